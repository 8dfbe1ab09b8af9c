package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
)

func reservationsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reservations", Short: "List what clients have reserved, and release what they have left", SilenceUsage: true}
	c := &rest.Connection{Flag: "--admin-url", Env: envAdminURL, Fallback: defaultAdminURL, What: "gateway"}
	cmd.PersistentFlags().StringVar(&c.URL, "admin-url", "", "the gateway's admin port (default $"+envAdminURL+", else "+defaultAdminURL+")")
	cmd.PersistentFlags().StringVar(&c.Token, "token", "", "a token of gateway.reservations.tokens (default $"+rest.EnvToken+")")
	return command.Group(cmd, listReservationsCommand(c), releaseReservationCommand(c))
}

// openReservation is one as a gateway lists it.
type openReservation struct {
	TenantID      string     `json:"tenantId"`
	UserID        string     `json:"userId,omitempty"`
	ApplicationID string     `json:"applicationId,omitempty"`
	ID            string     `json:"id"`
	State         string     `json:"state"`
	Reserved      int64      `json:"reserved"`
	Service       string     `json:"service,omitempty"`
	Endpoint      string     `json:"endpoint,omitempty"`
	Method        string     `json:"method,omitempty"`
	Metrics       []string   `json:"metrics,omitempty"`
	ReservedAt    *time.Time `json:"reservedAt,omitempty"`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
}

func listReservationsCommand(c *rest.Connection) *cobra.Command {
	var tenant, output string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List reservations that are open, the first to expire first", Args: command.NoArgs,
		Example: "  sluice reservations list --tenant acme",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit must be at least 1, not %d", limit)
			}
			query := url.Values{}
			if tenant != "" {
				query.Set("tenant", tenant)
			}
			open, err := rest.All[openReservation](cmd.Context(), c, "/v1/reservations", query, limit)
			if err != nil {
				return err
			}
			columns := []string{"TENANT", "ID", "RESERVED", "METRICS", "USER", "APPLICATION", "REQUEST", "SINCE", "EXPIRES"}
			return command.Show(cmd.OutOrStdout(), output, open, columns, openReservationRow)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant's")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	command.OutputFlag(cmd, &output)
	return cmd
}

func openReservationRow(r openReservation) []string {
	at := func(t *time.Time) string {
		if t == nil { // its record was lost
			return "-"
		}
		return t.UTC().Format(time.RFC3339)
	}
	return []string{
		r.TenantID, r.ID, fmt.Sprint(r.Reserved), strings.Join(r.Metrics, ","), r.UserID, r.ApplicationID,
		strings.TrimSpace(r.Method + " " + r.Endpoint), at(r.ReservedAt), at(r.ExpiresAt),
	}
}

func releaseReservationCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "release TENANT ID", Short: "Give back all that a reservation of a tenant holds", Args: command.Exactly(2, "a tenant and the ID of its reservation, such as acme job-1"),
		Example: "  sluice reservations release acme job-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := fmt.Sprintf("/v1/reservations/%s/%s/release", url.PathEscape(args[0]), url.PathEscape(args[1]))
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: path})
		},
	}
}
