package client

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
)

// walletView is what the API shows of a wallet, as far as lists print it.
type walletView struct {
	Customer  string `json:"customer"`
	Metric    string `json:"metric"`
	Granted   int64  `json:"granted"`
	Consumed  int64  `json:"consumed"`
	Refunded  int64  `json:"refunded"`
	Forfeited int64  `json:"forfeited"`
	Balance   int64  `json:"balance"`
	Source    string `json:"source"`
}

// newTopUp is what a wallet is topped up with.
type newTopUp struct {
	Amount    int64  `json:"amount"`
	ExpiresAt string `json:"expiresAt,omitempty"`
	ExpiresIn string `json:"expiresIn,omitempty"`
	Priority  int    `json:"priority,omitempty"`
	Note      string `json:"note,omitempty"`
}

func walletsPath(customer string) string {
	return "/v1/customers/" + url.PathEscape(customer) + "/wallets"
}

func walletPath(customer, metric string) string {
	return walletsPath(customer) + "/" + url.PathEscape(metric)
}

func walletsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "wallets", Short: "Read customers' wallets: what was bought, used and is left", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, listWalletsCommand(c), getWalletCommand(c))
}

func listWalletsCommand(c *rest.Connection) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list CUSTOMER", Short: "List a customer's wallets", Args: command.Exactly(1, "the ID of a customer"),
		Example: "  sluice wallets list acme",
		RunE: func(cmd *cobra.Command, args []string) error {
			items, err := rest.All[walletView](cmd.Context(), c, walletsPath(args[0]), url.Values{}, 0)
			if err != nil {
				return err
			}
			columns := []string{"METRIC", "GRANTED", "CONSUMED", "REFUNDED", "FORFEITED", "BALANCE", "FROM"}
			return command.Show(cmd.OutOrStdout(), output, items, columns, func(w walletView) []string {
				row := []string{w.Metric}
				for _, n := range []int64{w.Granted, w.Consumed, w.Refunded, w.Forfeited, w.Balance} {
					row = append(row, strconv.FormatInt(n, 10))
				}
				return append(row, w.Source)
			})
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

func getWalletCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "get CUSTOMER METRIC", Short: "Print a wallet, with what is left of each grant", Args: command.Exactly(2, "the ID of a customer and a metric, such as acme reports"),
		Example: "  sluice wallets get acme reports",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: walletPath(args[0], args[1])})
		},
	}
}

func topUpsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "topups", Short: "Top up customers' wallets", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, createTopUpCommand(c))
}

func createTopUpCommand(c *rest.Connection) *cobra.Command {
	var (
		body newTopUp
		key  string
	)
	cmd := &cobra.Command{
		Use: "create CUSTOMER METRIC --amount UNITS", Short: "Top up a wallet, once for each key", Args: command.Exactly(2, "the ID of a customer and a metric, such as acme reports"),
		Long: "Top up a wallet, once for each key. With the same --key it may be repeated: the first answer is printed again.\n" +
			"Without one a new key is made, and printed where no answer says what became of it, so that it can be repeated by that.",
		Example: "  sluice topups create acme reports --amount 1000 --key order-4711",
		RunE: func(cmd *cobra.Command, args []string) error {
			made := key == ""
			if made {
				key = rand.Text()
			}
			err := command.PrintJSON(cmd, c, rest.Call{
				Method: http.MethodPost, Path: walletPath(args[0], args[1]) + "/topups",
				Header: map[string]string{"Idempotency-Key": key}, Body: body,
			})
			if made && err != nil && !rest.Refused(err) {
				fmt.Fprintf(cmd.ErrOrStderr(), "it may have been done; to repeat it: --key %s\n", key)
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&body.Amount, "amount", 0, "units to grant")
	cmd.Flags().StringVar(&body.ExpiresAt, "expires-at", "", "when what is left of them is forfeited (RFC 3339)")
	cmd.Flags().StringVar(&body.ExpiresIn, "expires-in", "", "the same, as how long from now by the control plane's clock, such as 720h")
	cmd.Flags().IntVar(&body.Priority, "priority", 0, "grants of higher priority are spent first")
	cmd.Flags().StringVar(&body.Note, "note", "", "a note for people")
	cmd.Flags().StringVar(&key, "key", "", "Idempotency-Key; default is a new one")
	_ = cmd.MarkFlagRequired("amount") // the flag was added just above
	return cmd
}
