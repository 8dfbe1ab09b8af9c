package client

import (
	"github.com/spf13/cobra"
)

// Commands returns the client commands, to be mounted below the root: rules,
// overrides, services, keys, customers, plans, subscriptions, wallets,
// topups, reservations, usage, decision, explain. Each call returns new ones.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		ruleKind.command("Read and write rules: to whom, where, in which window, how much"),
		overridesCommand(),
		serviceKind.command("Read and write services: route prefix, upstreams, costs of endpoints"),
		keysCommand(),
		customersCommand(),
		plansCommand(),
		subscriptionsCommand(),
		invoicesCommand(),
		walletsCommand(),
		topUpsCommand(),
		reservationsCommand(),
		webhooksCommand(),
		usageCommand(),
		decisionCommand(),
		explainCommand(),
	}
}
