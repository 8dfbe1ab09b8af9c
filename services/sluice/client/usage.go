package client

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func usageCommand() *cobra.Command {
	var output string
	var limit int
	values := map[string]*string{}
	c := &connection{}
	cmd := &cobra.Command{
		Use: "usage", Short: "List decisions, the newest first", Args: cobra.NoArgs, SilenceUsage: true,
		Example: "  sluice usage --tenant acme --decision DENY --limit 20\n" +
			"  sluice usage --from 2026-07-23T00:00:00Z --to 2026-07-24T00:00:00Z --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit must be at least 1, not %d", limit)
			}
			query := url.Values{}
			for name, value := range values {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			events, err := all[usage.Event](cmd.Context(), c, "/v1/usage", query, limit)
			if err != nil {
				return err
			}
			columns := []string{"TIME", "DECISION", "STATUS", "TENANT", "USER", "SERVICE", "REQUEST", "RULE", "COST", "ID"}
			return show(cmd.OutOrStdout(), output, events, columns, usageRow)
		},
	}
	c.addFlags(cmd)
	values["tenantId"] = cmd.Flags().String("tenant", "", "only this tenant's requests")
	values["decision"] = cmd.Flags().String("decision", "", "only this decision: ALLOW, DENY or SHADOW")
	values["from"] = cmd.Flags().String("from", "", "from this time on (RFC 3339)")
	values["to"] = cmd.Flags().String("to", "", "before this time (RFC 3339)")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	outputFlag(cmd, &output)
	return cmd
}

func usageRow(e usage.Event) []string {
	return []string{
		e.TS.Format(time.RFC3339Nano), e.Decision, fmt.Sprint(e.StatusCode), e.TenantID, e.UserID, e.Service,
		e.Method + " " + e.Endpoint, e.RuleID, fmt.Sprint(e.Cost), e.ID,
	}
}

func decisionCommand() *cobra.Command {
	c := &connection{}
	cmd := &cobra.Command{
		Use: "decision ID", Short: "Print one decision, by the Sluice-Decision-Id of its answer", Args: cobra.ExactArgs(1), SilenceUsage: true,
		Example: "  sluice decision 01983f5c-7c1e-7d7a-9f0b-0c8f3a5e2b11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return printJSON(cmd, c, call{method: http.MethodGet, path: "/v1/decisions/" + url.PathEscape(args[0])})
		},
	}
	c.addFlags(cmd)
	return cmd
}
