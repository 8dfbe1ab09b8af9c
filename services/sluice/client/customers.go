package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/sales"
)

var customerKind = kind[sales.Customer]{
	noun: "customer", path: "/v1/customers",
	key:       func(c *sales.Customer) *string { return &c.ID },
	version:   func(c *sales.Customer) *int64 { return &c.Version },
	validate:  func(c sales.Customer) []strictjson.FieldError { return fieldErrors(plan.ValidateCustomer(c)) },
	normalize: func(c sales.Customer) sales.Customer { return c },
}

// customerUse is a customer as its list shows it.
type customerUse struct {
	sales.Customer
	Usage []struct {
		Metric string `json:"metric"`
		Rule   string `json:"rule"`
		Period struct {
			ID    string `json:"id"`
			Start string `json:"start,omitempty"`
			End   string `json:"end,omitempty"`
		} `json:"period"`
		Consumed  int64  `json:"consumed"`
		Refunded  int64  `json:"refunded"`
		Forfeited int64  `json:"forfeited,omitempty"`
		Granted   int64  `json:"granted,omitempty"`
		Balance   *int64 `json:"balance,omitempty"`
		Carried   int64  `json:"carried,omitempty"`
		Limit     *int64 `json:"limit,omitempty"`
		Remaining *int64 `json:"remaining,omitempty"`
		Source    string `json:"source"`
	} `json:"usage"`
}

func customersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "customers", Short: "Create customers, and list them with their use", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	k := customerKind
	return command.Group(cmd, createCustomerCommand(c), k.applyCommand(c), listCustomersCommand(c), k.getCommand(c), k.deleteCommand(c), linkCustomerCommand(c))
}

func createCustomerCommand(c *rest.Connection) *cobra.Command {
	var customer sales.Customer
	var contact sales.Contact
	cmd := &cobra.Command{
		Use: "create ID --name NAME", Short: "Create a customer: a tenant with a name", Args: command.Exactly(1, "the ID of the tenant"),
		Example: "  sluice customers create acme --name 'Acme Ltd' --currency EUR --timezone Europe/Istanbul --email billing@acme.example",
		RunE: func(cmd *cobra.Command, args []string) error {
			customer.ID = args[0]
			if contact != (sales.Contact{}) {
				customer.Contact = &contact
			}
			var mistakes []error
			for _, e := range plan.ValidateCustomer(customer) {
				mistakes = append(mistakes, e)
			}
			if len(mistakes) > 0 {
				return errors.Join(mistakes...)
			}
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodPost, Path: customerKind.path, Body: customer})
		},
	}
	cmd.Flags().StringVar(&customer.Name, "name", "", "what invoices and people call the customer")
	cmd.Flags().StringVar(&customer.Timezone, "timezone", "", "zone that periods are cut in where the plan names none, such as Europe/Istanbul")
	cmd.Flags().StringVar(&customer.Currency, "currency", "", "the currency the customer pays in (ISO 4217), such as EUR")
	cmd.Flags().StringVar(&contact.Email, "email", "", "who is told about use and invoices")
	_ = cmd.MarkFlagRequired("name") // the flag was added above
	return cmd
}

func listCustomersCommand(c *rest.Connection) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List customers with what they have used in the running periods", Args: command.NoArgs,
		Example: "  sluice customers list\n  sluice customers list --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			items, err := rest.All[customerUse](cmd.Context(), c, customerKind.path, url.Values{}, 0)
			if err != nil {
				return err
			}
			if output == "json" {
				return command.Show(cmd.OutOrStdout(), output, items, nil, nil)
			}
			var lines [][]string
			for _, item := range items {
				lines = append(lines, item.lines()...)
			}
			columns := []string{"ID", "NAME", "METRIC", "PERIOD", "USED", "LIMIT", "LEFT", "SOURCE"}
			return command.Show(cmd.OutOrStdout(), output, lines, columns, func(line []string) []string { return line })
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

// lines are one a counter, and one for a customer without any. Used is what was
// charged and not given back: charges alone may pass the limit.
func (c customerUse) lines() [][]string {
	if len(c.Usage) == 0 {
		return [][]string{{c.ID, c.Name, "-", "-", "-", "-", "-", "-"}}
	}
	var lines [][]string
	for _, u := range c.Usage {
		limit, left := "unlimited", "-"
		switch {
		case u.Limit != nil && u.Remaining != nil:
			limit, left = fmt.Sprint(*u.Limit), fmt.Sprint(*u.Remaining)
		case u.Balance != nil:
			limit, left = "prepaid", fmt.Sprint(*u.Balance)
		}
		lines = append(lines, []string{c.ID, c.Name, u.Metric, rest.FirstOf(u.Period.ID, "-"), fmt.Sprint(max(0, u.Consumed-u.Refunded)), limit, left, u.Source})
	}
	return lines
}
