package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// Commands returns the client commands, to be mounted below the root: rules,
// overrides, services, keys, cache, customers, plans, subscriptions, wallets,
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
		cacheCommand(),
		walletsCommand(),
		topUpsCommand(),
		reservationsCommand(),
		webhooksCommand(),
		usageCommand(),
		decisionCommand(),
		explainCommand(),
	}
}

func (k kind[T]) command(short string) *cobra.Command {
	cmd := &cobra.Command{Use: k.noun + "s", Short: short, SilenceUsage: true}
	c := &connection{}
	c.addFlags(cmd)
	return withSubcommands(cmd, k.applyCommand(c), k.listCommand(c), k.getCommand(c), k.deleteCommand(c))
}

func (k kind[T]) listCommand(c *connection) *cobra.Command {
	var output string
	values := make(map[string]*string, len(k.filters))
	cmd := &cobra.Command{
		Use: "list", Short: "List " + k.noun + "s", Args: NoArgs,
		Example: "  sluice " + k.noun + "s list\n  sluice " + k.noun + "s list --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range values {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			items, err := all[T](cmd.Context(), c, k.path, query, 0)
			if err != nil {
				return err
			}
			if err := show(cmd.OutOrStdout(), output, items, k.columns, k.row); err != nil {
				return err
			}
			if output != "json" {
				k.warnOfStored(cmd.Context(), c, items, cmd.ErrOrStderr())
			}
			return nil
		},
	}
	for name, about := range k.filters {
		values[name] = cmd.Flags().String(name, "", about)
	}
	outputFlag(cmd, &output)
	return cmd
}

func (k kind[T]) getCommand(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Print " + k.one() + " as JSON, fit for apply", Args: exactly(1, "the ID of "+k.one()),
		Example: "  sluice " + k.noun + "s get demo > demo.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return printJSON(cmd, c, call{method: http.MethodGet, path: k.item(args[0])})
		},
	}
}

func (k kind[T]) deleteCommand(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID...", Short: "Delete " + k.noun + "s", Args: some("the ID of " + k.one() + ", or several"),
		Example: "  sluice " + k.noun + "s delete demo",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				r := call{method: http.MethodDelete, path: k.item(id), header: map[string]string{"If-Match": "*"}}
				if err := c.do(cmd.Context(), r); err != nil {
					return fmt.Errorf("delete %s %q: %w", k.noun, id, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "- delete %s %s\n", k.noun, id)
			}
			return nil
		},
	}
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return fmt.Errorf("--output must be table or json, not %q", *output)
		}
		return nil
	}
}

// show prints items as a table or as a JSON array.
func show[T any](w io.Writer, output string, items []T, columns []string, row func(T) []string) error {
	if output == "json" {
		if items == nil {
			items = []T{} // an empty list is [], not null
		}
		return writeJSON(w, items)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, item := range items {
		fmt.Fprintln(t, strings.Join(row(item), "\t"))
	}
	return t.Flush()
}

// printJSON does a call and prints its answer.
func printJSON(cmd *cobra.Command, c *connection, r call) error {
	var answer json.RawMessage
	r.into = &answer
	if err := c.do(cmd.Context(), r); err != nil {
		return err
	}
	return writeJSON(cmd.OutOrStdout(), answer)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
