package client

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func reservationsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reservations", Short: "Release what clients have reserved and left", SilenceUsage: true}
	c := &connection{flag: "--admin-url", env: envAdminURL, fallback: defaultAdminURL, what: "gateway"}
	cmd.PersistentFlags().StringVar(&c.url, "admin-url", "", "the gateway's admin port (default $"+envAdminURL+", else "+defaultAdminURL+")")
	cmd.PersistentFlags().StringVar(&c.token, "token", "", "a token of gateway.reservations.tokens (default $"+envToken+")")
	return withSubcommands(cmd, releaseReservationCommand(c))
}

func releaseReservationCommand(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "release TENANT ID", Short: "Give back all that a reservation of a tenant holds", Args: cobra.ExactArgs(2),
		Example: "  sluice reservations release acme job-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := fmt.Sprintf("/v1/reservations/%s/%s/release", url.PathEscape(args[0]), url.PathEscape(args[1]))
			return printJSON(cmd, c, call{method: http.MethodPost, path: path})
		},
	}
}
