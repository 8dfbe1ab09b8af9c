package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
)

// apiKey is what the API shows of a key.
type apiKey struct {
	ID            string `json:"id"`
	Version       int64  `json:"version"`
	Name          string `json:"name,omitempty"`
	TenantID      string `json:"tenantId"`
	UserID        string `json:"userId,omitempty"`
	ApplicationID string `json:"applicationId,omitempty"`
	Status        string `json:"status"`
	ExpiresAt     string `json:"expiresAt,omitempty"`
}

// newKey is what a key is created from.
type newKey struct {
	Name          string `json:"name,omitempty"`
	TenantID      string `json:"tenantId"`
	UserID        string `json:"userId,omitempty"`
	ApplicationID string `json:"applicationId,omitempty"`
	ExpiresAt     string `json:"expiresAt,omitempty"`
}

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Create, list and revoke API keys", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, createKeyCommand(c), listKeysCommand(c), revokeKeyCommand(c))
}

func createKeyCommand(c *rest.Connection) *cobra.Command {
	var key newKey
	cmd := &cobra.Command{
		Use: "create --tenant TENANT", Short: "Create an API key, and print it this once", Args: command.NoArgs,
		Example: "  sluice keys create --tenant acme --name ci --expires-at 2027-01-01T00:00:00Z",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer warned
			data, err := c.Fetch(cmd.Context(), rest.Call{Method: http.MethodPost, Path: "/v1/keys", Body: key})
			if err != nil {
				return err
			}
			if err := errors.Join(json.Unmarshal(data, &answer), command.WriteJSON(cmd.OutOrStdout(), json.RawMessage(data))); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "keep the key: it is shown this once, and only its hash is stored")
			answer.print(cmd.ErrOrStderr())
			return nil
		},
	}
	cmd.Flags().StringVar(&key.TenantID, "tenant", "", "whose requests the key identifies")
	cmd.Flags().StringVar(&key.UserID, "user", "", "bind the key to a user of the tenant")
	cmd.Flags().StringVar(&key.ApplicationID, "application", "", "bind the key to an application of the tenant")
	cmd.Flags().StringVar(&key.Name, "name", "", "a name for people")
	cmd.Flags().StringVar(&key.ExpiresAt, "expires-at", "", "when the key ends (RFC 3339)")
	_ = cmd.MarkFlagRequired("tenant") // the flag was added just above
	return cmd
}

func listKeysCommand(c *rest.Connection) *cobra.Command {
	var tenant, output string
	cmd := &cobra.Command{
		Use: "list", Short: "List API keys", Args: command.NoArgs,
		Example: "  sluice keys list --tenant acme",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if tenant != "" {
				query.Set("tenantId", tenant)
			}
			items, err := rest.All[apiKey](cmd.Context(), c, "/v1/keys", query, 0)
			if err != nil {
				return err
			}
			columns := []string{"ID", "NAME", "TENANT", "USER", "APPLICATION", "STATUS", "EXPIRES"}
			return command.Show(cmd.OutOrStdout(), output, items, columns, func(k apiKey) []string {
				return []string{k.ID, k.Name, k.TenantID, k.UserID, k.ApplicationID, k.Status, rest.FirstOf(k.ExpiresAt, "never")}
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only keys of this tenant")
	command.OutputFlag(cmd, &output)
	return cmd
}

func revokeKeyCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Short: "Revoke API keys, for good", Args: command.Some("the ID of a key, or several"),
		Example: "  sluice keys revoke key_5f2c0a6e-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				err := c.Do(cmd.Context(), rest.Call{
					Method: http.MethodPatch, Path: "/v1/keys/" + url.PathEscape(id),
					Header: map[string]string{"If-Match": "*"}, Body: map[string]string{"status": "revoked"},
				})
				if err != nil {
					return fmt.Errorf("revoke key %q: %w", id, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "revoked key %s\n", id)
			}
			return nil
		},
	}
}
