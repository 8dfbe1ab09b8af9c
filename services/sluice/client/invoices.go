package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/sales"
)

const invoicesPath = "/v1/invoices"

func invoicesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "invoices", Short: "Read customers' invoices", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, listInvoicesCommand(c), getInvoiceCommand(c))
}

func listInvoicesCommand(c *rest.Connection) *cobra.Command {
	var output, customer, status string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List invoices, those of the latest periods first", Args: command.NoArgs,
		Example: "  sluice invoices list --customer acme\n  sluice invoices list --status final --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range map[string]string{"customer": customer, "status": status} {
				if value != "" {
					query.Set(name, value)
				}
			}
			items, err := rest.All[sales.Invoice](cmd.Context(), c, invoicesPath, query, limit)
			if err != nil {
				return err
			}
			columns := []string{"ID", "NUMBER", "CUSTOMER", "FROM", "TO", "STATUS", "TOTAL"}
			return command.Show(cmd.OutOrStdout(), output, items, columns, func(i sales.Invoice) []string {
				return []string{i.ID, rest.FirstOf(i.Number, "-"), i.Customer, i.Start.Format("2006-01-02T15:04Z"), i.End.Format("2006-01-02T15:04Z"), i.Status, i.Total + " " + i.Currency}
			})
		},
	}
	cmd.Flags().StringVar(&customer, "customer", "", "only this customer's")
	cmd.Flags().StringVar(&status, "status", "", "only draft or final ones")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0 is all")
	command.OutputFlag(cmd, &output)
	return cmd
}

func getInvoiceCommand(c *rest.Connection) *cobra.Command {
	var html, pdf string
	cmd := &cobra.Command{
		Use: "get ID", Short: "Print an invoice, or write it as HTML or PDF", Args: command.Exactly(1, "the ID of an invoice"),
		Example: "  sluice invoices get 019a…\n  sluice invoices get 019a… --pdf invoice.pdf",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := invoicesPath + "/" + url.PathEscape(args[0])
			switch {
			case html != "":
				return download(c, cmd, path+"/html", html)
			case pdf != "":
				return download(c, cmd, path+"/pdf", pdf)
			}
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: path})
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write it as HTML to this `file`")
	cmd.Flags().StringVar(&pdf, "pdf", "", "write it as PDF to this `file`")
	cmd.MarkFlagsMutuallyExclusive("html", "pdf")
	return cmd
}

// download writes an answer that is a file to a file.
func download(c *rest.Connection, cmd *cobra.Command, path, to string) error {
	body, err := c.Fetch(cmd.Context(), rest.Call{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, body, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s, %d bytes\n", to, len(body))
	return nil
}

func linkCustomerCommand(c *rest.Connection) *cobra.Command {
	var expires string
	cmd := &cobra.Command{
		Use: "link ID", Short: "Make a link that opens a customer's account in the portal", Args: command.Exactly(1, "the ID of the customer"),
		Long:    "Make a link that opens a customer's account in the portal. Whoever has it sees the account until it expires.",
		Example: "  sluice customers link acme --expires 72h",
		RunE: func(cmd *cobra.Command, args []string) error {
			var made struct {
				URL string `json:"url"`
			}
			asked := map[string]string{}
			if expires != "" {
				asked["expiresIn"] = expires
			}
			path := customerKind.path + "/" + url.PathEscape(args[0]) + "/portal-links"
			if err := c.Do(cmd.Context(), rest.Call{Method: http.MethodPost, Path: path, Body: asked, Into: &made}); err != nil {
				return err
			}
			if made.URL == "" {
				return errors.New("the control plane answered without a link")
			}
			fmt.Fprintln(cmd.OutOrStdout(), made.URL)
			return nil
		},
	}
	cmd.Flags().StringVar(&expires, "expires", "", "how long it holds, such as 72h (1m to 2160h; 24h by default)")
	return cmd
}
