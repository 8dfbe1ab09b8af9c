package client

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"
	"github.com/spf13/cobra"
)

func (k kind[T]) command(short string) *cobra.Command {
	cmd := &cobra.Command{Use: k.noun + "s", Short: short, SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, k.applyCommand(c), k.listCommand(c), k.getCommand(c), k.deleteCommand(c))
}

func (k kind[T]) listCommand(c *rest.Connection) *cobra.Command {
	var output string
	values := make(map[string]*string, len(k.filters))
	cmd := &cobra.Command{
		Use: "list", Short: "List " + k.noun + "s", Args: command.NoArgs,
		Example: "  sluice " + k.noun + "s list\n  sluice " + k.noun + "s list --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range values {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			items, err := rest.All[T](cmd.Context(), c, k.path, query, 0)
			if err != nil {
				return err
			}
			if err := command.Show(cmd.OutOrStdout(), output, items, k.columns, k.row); err != nil {
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
	command.OutputFlag(cmd, &output)
	return cmd
}

func (k kind[T]) getCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Print " + k.one() + " as JSON, fit for apply", Args: command.Exactly(1, "the ID of "+k.one()),
		Example: "  sluice " + k.noun + "s get demo > demo.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: k.item(args[0])})
		},
	}
}

func (k kind[T]) deleteCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID...", Short: "Delete " + k.noun + "s", Args: command.Some("the ID of " + k.one() + ", or several"),
		Example: "  sluice " + k.noun + "s delete demo",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				r := rest.Call{Method: http.MethodDelete, Path: k.item(id), Header: map[string]string{"If-Match": "*"}}
				if err := c.Do(cmd.Context(), r); err != nil {
					return fmt.Errorf("delete %s %q: %w", k.noun, id, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "- delete %s %s\n", k.noun, id)
			}
			return nil
		},
	}
}
