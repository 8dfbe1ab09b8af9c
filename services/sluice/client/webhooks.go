package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// hook is what the API shows of a webhook.
type hook struct {
	ID          string   `json:"id,omitempty"`
	Version     int64    `json:"version,omitempty"`
	URL         string   `json:"url"`
	Description string   `json:"description,omitempty"`
	EventTypes  []string `json:"eventTypes,omitempty"`
	TenantID    string   `json:"tenantId,omitempty"`
	Enabled     *bool    `json:"enabled,omitempty"`
	Status      string   `json:"status,omitempty"`
}

// webhookDelivery is what the API shows of an event on its way.
type webhookDelivery struct {
	ID        int64  `json:"id"`
	EventID   string `json:"eventId"`
	EventType string `json:"eventType"`
	EventTime string `json:"eventTime"`
	State     string `json:"state"`
	Attempts  int    `json:"attempts"`
	DueAt     string `json:"dueAt,omitempty"`
	GiveUpAt  string `json:"giveUpAt"`
	Status    *int   `json:"status,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// The rest is for JSON alone.
	AttemptedAt string `json:"attemptedAt,omitempty"`
	CreatedAt   string `json:"createdAt"`
}

const (
	webhooksPath = "/v1/webhooks"
	oneWebhook   = "the ID of a webhook"
	keepSecret   = "keep the secret: it is shown this once"
)

func webhookPath(id string) string { return webhooksPath + "/" + url.PathEscape(id) }

func webhooksCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "webhooks", Short: "Create, test and repair webhooks", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, createWebhookCommand(c), listWebhooksCommand(c), deleteWebhookCommand(c), rotateWebhookCommand(c),
		testWebhookCommand(c), listDeliveriesCommand(c), redeliverCommand(c))
}

func createWebhookCommand(c *rest.Connection) *cobra.Command {
	var w hook
	cmd := &cobra.Command{
		Use: "create URL", Short: "Create a webhook, and print its secret this once", Args: command.Exactly(1, "a URL"),
		Example: "  sluice webhooks create https://example.com/hooks/sluice --tenant acme",
		RunE: func(cmd *cobra.Command, args []string) error {
			w.URL = args[0]
			if err := command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: webhooksPath, Body: w}); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), keepSecret)
			return nil
		},
	}
	cmd.Flags().StringVar(&w.Description, "description", "", "for people")
	cmd.Flags().StringVar(&w.TenantID, "tenant", "", "only events of this tenant")
	cmd.Flags().StringSliceVar(&w.EventTypes, "type", nil, "only events of this type ("+strings.Join(quotaevents.Types, ", ")+"); may be repeated")
	return cmd
}

func listWebhooksCommand(c *rest.Connection) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List webhooks", Args: command.NoArgs,
		Example: "  sluice webhooks list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			items, err := rest.All[hook](cmd.Context(), c, webhooksPath, url.Values{}, 0)
			if err != nil {
				return err
			}
			columns := []string{"ID", "STATUS", "TENANT", "URL", "DESCRIPTION"}
			return command.Show(cmd.OutOrStdout(), output, items, columns, func(w hook) []string {
				return []string{w.ID, w.Status, rest.FirstOf(w.TenantID, "any"), w.URL, w.Description}
			})
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

func deleteWebhookCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID...", Short: "Delete webhooks, and all that waits for them", Args: command.Some("the ID of a webhook, or several"),
		Example: "  sluice webhooks delete wh_5f2c0a6e-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				err := c.Do(cmd.Context(), rest.Call{Method: http.MethodDelete, Path: webhookPath(id), Header: map[string]string{"If-Match": "*"}})
				if err != nil {
					return fmt.Errorf("delete webhook %q: %w", id, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted webhook %s\n", id)
			}
			return nil
		},
	}
}

func rotateWebhookCommand(c *rest.Connection) *cobra.Command {
	var keep int
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Make a new secret, and print it this once", Args: command.Exactly(1, oneWebhook),
		Example: "  sluice webhooks rotate wh_5f2c0a6e-… --keep-hours 48",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := webhookPath(args[0]) + "/secret?keepHours=" + strconv.Itoa(keep)
			if err := command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: path}); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), keepSecret)
			return nil
		},
	}
	cmd.Flags().IntVar(&keep, "keep-hours", 24, "how long the former secret goes on signing beside it")
	return cmd
}

func testWebhookCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Send a test event now, and print what the endpoint answers", Args: command.Exactly(1, oneWebhook),
		Example: "  sluice webhooks test wh_5f2c0a6e-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: webhookPath(args[0]) + "/test"})
		},
	}
}

func listDeliveriesCommand(c *rest.Connection) *cobra.Command {
	var state, output string
	var limit int
	cmd := &cobra.Command{
		Use: "deliveries ID", Short: "List what a webhook was sent, the newest first", Args: command.Exactly(1, oneWebhook),
		Example: "  sluice webhooks deliveries wh_5f2c0a6e-… --state dead",
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if state != "" {
				query.Set("state", state)
			}
			items, err := rest.All[webhookDelivery](cmd.Context(), c, webhookPath(args[0])+"/deliveries", query, limit)
			if err != nil {
				return err
			}
			columns := []string{"ID", "STATE", "ATTEMPTS", "EVENT", "TIME", "REASON"}
			return command.Show(cmd.OutOrStdout(), output, items, columns, func(d webhookDelivery) []string {
				return []string{strconv.FormatInt(d.ID, 10), d.State, strconv.Itoa(d.Attempts), d.EventID, d.EventTime, d.Reason}
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only pending, delivered or dead ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	command.OutputFlag(cmd, &output)
	return cmd
}

func redeliverCommand(c *rest.Connection) *cobra.Command {
	var delivery int64
	cmd := &cobra.Command{
		Use: "redeliver ID", Short: "Deliver all dead letters of a webhook once more, or one delivery", Args: command.Exactly(1, oneWebhook),
		Example: "  sluice webhooks redeliver wh_5f2c0a6e-…",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := webhookPath(args[0]) + "/redeliver"
			if delivery != 0 {
				path = fmt.Sprintf("%s/deliveries/%d/redeliver", webhookPath(args[0]), delivery)
			}
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: path})
		},
	}
	cmd.Flags().Int64Var(&delivery, "delivery", 0, "only this delivery, by its ID; also one that was delivered")
	return cmd
}
