package client

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func usageCommand() *cobra.Command {
	var output string
	var limit int
	values := map[string]*string{}
	c := &rest.Connection{}
	cmd := &cobra.Command{
		Use: "usage", Short: "List decisions, the newest first", Args: command.NoArgs, SilenceUsage: true,
		Example: "  sluice usage --tenant acme --decision DENY --limit 20\n" +
			"  sluice usage --from 2026-07-23T00:00:00Z --to 2026-07-24T00:00:00Z --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit must be at least 1, not %d", limit)
			}
			query, err := usageQuery(values)
			if err != nil {
				return err
			}
			events, err := rest.All[usage.Event](cmd.Context(), c, "/v1/usage", query, limit)
			if err != nil {
				return err
			}
			columns := []string{"TIME", "DECISION", "STATUS", "TENANT", "USER", "SERVICE", "REQUEST", "RULE", "COST", "ID"}
			return command.Show(cmd.OutOrStdout(), output, events, columns, usageRow)
		},
	}
	c.AddFlags(cmd)
	values["tenantId"] = cmd.Flags().String("tenant", "", "only this tenant's requests")
	values["decision"] = cmd.Flags().String("decision", "", "only this decision: "+strings.Join(usage.Decisions(), ", "))
	values["from"] = cmd.Flags().String("from", "", "from this time on (RFC 3339)")
	values["to"] = cmd.Flags().String("to", "", "before this time (RFC 3339)")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	command.OutputFlag(cmd, &output)
	return cmd
}

// usageQuery makes parameters of flags; what the control plane would refuse is
// refused by the flag's name.
func usageQuery(values map[string]*string) (url.Values, error) {
	query := url.Values{}
	for name, value := range values {
		if *value != "" {
			query.Set(name, *value)
		}
	}
	if given := query.Get("decision"); given != "" {
		decision := strings.ToUpper(given)
		if !slices.Contains(usage.Decisions(), decision) {
			return nil, fmt.Errorf("--decision must be one of %s, not %q", strings.Join(usage.Decisions(), ", "), given)
		}
		query.Set("decision", decision)
	}
	for _, name := range []string{"from", "to"} {
		if given := query.Get(name); given != "" {
			if _, err := time.Parse(time.RFC3339, given); err != nil {
				return nil, fmt.Errorf("--%s must be RFC 3339, such as 2026-07-23T00:00:00Z, not %q", name, given)
			}
		}
	}
	return query, nil
}

func usageRow(e usage.Event) []string {
	return []string{
		e.TS.UTC().Format(command.TableTime), e.Decision, fmt.Sprint(e.StatusCode), e.TenantID, e.UserID, e.Service,
		e.Method + " " + e.Endpoint, e.RuleID, fmt.Sprint(e.Cost), e.ID,
	}
}

func decisionCommand() *cobra.Command {
	c := &rest.Connection{}
	cmd := &cobra.Command{
		Use: "decision ID", Short: "Print one decision, by the Sluice-Decision-Id of its answer", Args: command.Exactly(1, "a decision ID"), SilenceUsage: true,
		Example: "  sluice decision 01983f5c-7c1e-7d7a-9f0b-0c8f3a5e2b11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: "/v1/decisions/" + url.PathEscape(args[0])})
		},
	}
	c.AddFlags(cmd)
	return cmd
}
