package client

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/sales"
)

var subscriptionKind = kind[sales.Subscription]{
	noun: "subscription", path: "/v1/subscriptions",
	columns: []string{"ID", "CUSTOMER", "PLAN", "VERSION", "STATUS", "STARTED", "ENDS"},
	row: func(s sales.Subscription) []string {
		return []string{s.ID, s.Customer, s.Plan, fmt.Sprint(s.PlanVersion), s.Status, timeText(s.StartedAt, "-"), timeText(s.EndsAt, "never")}
	},
	filters: map[string]string{
		"customer": "only subscriptions of this customer",
		"plan":     "only subscriptions to this plan",
		"status":   "only subscriptions in this state: active or ended",
	},
}

func timeText(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.UTC().Format(time.RFC3339)
}

func subscriptionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "subscriptions", Short: "Subscribe customers to plans, change and end that", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	k := subscriptionKind
	return command.Group(cmd, createSubscriptionCommand(c), k.listCommand(c), getSubscriptionCommand(c), changeSubscriptionCommand(c), endSubscriptionCommand(c))
}

func createSubscriptionCommand(c *rest.Connection) *cobra.Command {
	var s sales.Subscription
	cmd := &cobra.Command{
		Use: "create --customer ID --plan PLAN", Short: "Subscribe a customer to a plan", Args: command.NoArgs,
		Example: "  sluice subscriptions create --customer acme --plan pro",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := planVersion(cmd, s.PlanVersion); err != nil {
				return err
			}
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: subscriptionKind.path, Body: s})
		},
	}
	cmd.Flags().StringVar(&s.Customer, "customer", "", "who subscribes")
	cmd.Flags().StringVar(&s.Plan, "plan", "", "to what")
	cmd.Flags().Int64Var(&s.PlanVersion, "version", 0, "the version of the plan (default the newest)")
	_ = cmd.MarkFlagRequired("customer") // both flags were added above
	_ = cmd.MarkFlagRequired("plan")
	return cmd
}

// planVersion refuses a --version that no plan has.
func planVersion(cmd *cobra.Command, n int64) error {
	if cmd.Flags().Changed("version") && n < 1 {
		return fmt.Errorf("--version must be 1 or more, not %d; leave it out for the newest", n)
	}
	return nil
}

func getSubscriptionCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Print a subscription as JSON", Args: command.Exactly(1, "the ID of a subscription"),
		Example: "  sluice subscriptions get sub_6f1c2a…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: subscriptionKind.item(args[0])})
		},
	}
}

func changeSubscriptionCommand(c *rest.Connection) *cobra.Command {
	var plan string
	var version int64
	cmd := &cobra.Command{
		Use: "change ID", Short: "Put a subscription on another plan or version; what was used stays used", Args: command.Exactly(1, "the ID of a subscription"),
		Example: "  sluice subscriptions change sub_6f1c2a… --plan enterprise\n  sluice subscriptions change sub_6f1c2a… --version 2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := planVersion(cmd, version); err != nil {
				return err
			}
			return changeSubscription(cmd, c, args[0], func(s *sales.Subscription) {
				s.Plan, s.PlanVersion = rest.FirstOf(plan, s.Plan), version
			})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "another plan (default the plan it is on)")
	cmd.Flags().Int64Var(&version, "version", 0, "the version of the plan (default the newest)")
	return cmd
}

func endSubscriptionCommand(c *rest.Connection) *cobra.Command {
	var atPeriodEnd bool
	cmd := &cobra.Command{
		Use: "end ID", Short: "End a subscription, now or with its period", Args: command.Exactly(1, "the ID of a subscription"),
		Example: "  sluice subscriptions end sub_6f1c2a… --at-period-end",
		RunE: func(cmd *cobra.Command, args []string) error {
			if atPeriodEnd {
				return changeSubscription(cmd, c, args[0], func(s *sales.Subscription) { s.CancelAtPeriodEnd = true })
			}
			r := rest.Call{Method: http.MethodDelete, Path: subscriptionKind.item(args[0]), Header: map[string]string{"If-Match": "*"}}
			if err := c.Do(cmd.Context(), r); err != nil {
				return fmt.Errorf("end subscription %q: %w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ended subscription %s\n", args[0])
			fmt.Fprintln(cmd.ErrOrStderr(), "its rules are gone, the customer's keys are not: where no other rule limits them, they may call as often as they like; revoke them, or see sluice keys list")
			return nil
		},
	}
	cmd.Flags().BoolVar(&atPeriodEnd, "at-period-end", false, "let it run to the end of the plan's running period")
	return cmd
}

// changeSubscription writes back a subscription as change leaves it, under the
// version that was read.
func changeSubscription(cmd *cobra.Command, c *rest.Connection, id string, change func(*sales.Subscription)) error {
	path := subscriptionKind.path + "/" + url.PathEscape(id)
	var s sales.Subscription
	if err := c.Do(cmd.Context(), rest.Call{Method: http.MethodGet, Path: path, Into: &s}); err != nil {
		return fmt.Errorf("read subscription %q: %w", id, err)
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(s.Version))
	change(&s)
	return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPut, Path: path, Body: s, Header: map[string]string{"If-Match": etag}})
}
