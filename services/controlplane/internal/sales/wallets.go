package sales

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/wallet/ledger"
	"github.com/sluice-platform/sluice/schemas/events/grants"
)

const (
	walletsPath = "/v1/customers/{id}/wallets"
	walletPath  = walletsPath + "/{metric}"
)

// CustomerInput names one customer.
type CustomerInput struct {
	ID string `path:"id" doc:"The customer's id, percent-escaped."`
}

// WalletInput names one wallet.
type WalletInput struct {
	ID     string `path:"id" doc:"The customer's id, percent-escaped."`
	Metric string `path:"metric" doc:"What the wallet's units are of."`
}

func (in WalletInput) key() string { return grants.WalletID(in.ID, in.Metric) }

func (in WalletInput) url() string {
	path := strings.Replace(walletPath, "{id}", url.PathEscape(in.ID), 1)
	return strings.Replace(path, "{metric}", url.PathEscape(in.Metric), 1)
}

var metricSyntax = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (in WalletInput) check() []api.FieldError {
	if metricSyntax.MatchString(in.Metric) {
		return nil
	}
	return []api.FieldError{api.InPath("metric", "must be 1 to 64 of letters, digits, dot, underscore and hyphen")}
}

func (s *Handlers) registerWallets(a *api.API) {
	tags := []string{"wallets"}
	api.Register(a, huma.Operation{OperationID: "list-wallets", Method: http.MethodGet, Path: walletsPath, Tags: tags,
		Summary: "List a customer's wallets, by metric"}, nil, s.listWallets)
	api.Register(a, huma.Operation{OperationID: "get-wallet", Method: http.MethodGet, Path: walletPath, Tags: tags,
		Summary: "Get a wallet: its balance, and what is left of each grant"}, nil, s.getWallet)
	api.Register(a, huma.Operation{OperationID: "list-wallet-ledger", Method: http.MethodGet, Path: walletPath + "/ledger", Tags: tags,
		Summary: "What was granted to a wallet and what was forfeited, the newest first"}, nil, s.listLedger)
}

func (s *Handlers) listWallets(ctx context.Context, in *struct {
	CustomerInput
	api.PageInput
}) (*struct{ Body api.Page[Wallet] }, error) {
	after, p := api.DecodeCursor("wallet", in.Cursor)
	if p != nil {
		return nil, p
	}
	if _, err := s.Store.Get(ctx, store.Customers, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	accounts, err := ledger.List(ctx, s.Store.Pool, in.ID, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	var page api.Page[Wallet]
	if len(accounts) > in.Limit {
		accounts = accounts[:in.Limit]
		page.Next = api.EncodeCursor("wallet", accounts[in.Limit-1].Metric)
	}
	page.Items, err = s.view(ctx, accounts)
	return &struct{ Body api.Page[Wallet] }{page}, err
}

// getWallet also answers for one that nothing was granted to, as long as there
// may be one: it is empty.
func (s *Handlers) getWallet(ctx context.Context, in *struct{ WalletInput }) (*struct{ Body Wallet }, error) {
	if found := in.check(); found != nil {
		return nil, api.Invalid(found...)
	}
	if _, err := s.Store.Get(ctx, store.Customers, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	account, ok, err := ledger.Get(ctx, s.Store.Pool, in.key())
	if err == nil && !ok {
		account = ledger.Account{Key: in.key(), Tenant: in.ID, Metric: in.Metric}
		err = sells(ctx, s.Store.Pool, in.ID, in.Metric)
	}
	if err != nil {
		return nil, err
	}
	all, err := s.view(ctx, []ledger.Account{account})
	if err != nil {
		return nil, err
	}
	return &struct{ Body Wallet }{all[0]}, nil
}

func (s *Handlers) listLedger(ctx context.Context, in *struct {
	WalletInput
	api.PageInput
}) (*struct{ Body api.Page[LedgerEntry] }, error) {
	last, p := api.DecodeCursor("ledger", in.Cursor)
	if p != nil {
		return nil, p
	}
	before := int64(0)
	if last != "" {
		var err error
		if before, err = strconv.ParseInt(last, 10, 64); err != nil || before < 1 {
			return nil, api.Invalid(api.InQuery("cursor", "must be the next of an earlier page of this list"))
		}
	}
	if _, err := s.Store.Get(ctx, store.Customers, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	entries, err := ledger.History(ctx, s.Store.Pool, in.key(), before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	var page api.Page[LedgerEntry]
	if len(entries) > in.Limit {
		entries = entries[:in.Limit]
		page.Next = api.EncodeCursor("ledger", strconv.FormatInt(entries[in.Limit-1].ID, 10))
	}
	page.Items = viewEntries(entries)
	return &struct{ Body api.Page[LedgerEntry] }{page}, nil
}

// sells is nil if a prepaid rule names the metric for the customer: one of its
// own, as subscriptions write them, or one of every tenant.
func sells(ctx context.Context, q store.Querier, customer, metric string) error {
	var one int
	err := q.QueryRow(ctx, `SELECT 1 FROM rules WHERE document->'limit'->>'kind' = 'prepaid' AND document->'subject'->>'value' IN ($1, '*')
		AND document->>'metric' = $2 LIMIT 1`, customer, metric).Scan(&one)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		p := api.NewProblem(http.StatusNotFound, "unknown-metric", "no prepaid quota of a rule or plan names this metric for the customer")
		p.Errors = []api.FieldError{api.InPath("metric", "must be one that a prepaid quota of the customer names; "+api.Printable(metric)+" is none")}
		return p
	case err != nil:
		return fmt.Errorf("look for prepaid rules: %w", err)
	}
	return nil
}

// noCustomer says which part of the path names nothing.
func noCustomer() *api.Problem {
	p := api.NewProblem(http.StatusNotFound, "unknown-customer", "there is no customer by this id")
	p.Errors = []api.FieldError{api.InPath("id", "must be the id of a customer")}
	return p
}

// customerMissing says so where a customer was not found.
func customerMissing(err error) error {
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return noCustomer()
	}
	return err
}
