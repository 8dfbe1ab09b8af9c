package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

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

func (in WalletInput) check() []FieldError {
	if metricSyntax.MatchString(in.Metric) {
		return nil
	}
	return []FieldError{{"path", "metric", "must be 1 to 64 of letters, digits, dot, underscore and hyphen"}}
}

func (s *Service) registerWallets(api huma.API) {
	tags := []string{"wallets"}
	register(s, api, huma.Operation{OperationID: "list-wallets", Method: http.MethodGet, Path: walletsPath, Tags: tags,
		Summary: "List a customer's wallets, by metric"}, nil, s.listWallets)
	register(s, api, huma.Operation{OperationID: "get-wallet", Method: http.MethodGet, Path: walletPath, Tags: tags,
		Summary: "Get a wallet: its balance, and what is left of each grant"}, nil, s.getWallet)
	register(s, api, huma.Operation{OperationID: "list-wallet-ledger", Method: http.MethodGet, Path: walletPath + "/ledger", Tags: tags,
		Summary: "What was granted to a wallet and what was forfeited, the newest first"}, nil, s.listLedger)
}

func (s *Service) listWallets(ctx context.Context, in *struct {
	CustomerInput
	PageInput
}) (*struct{ Body Page[Wallet] }, error) {
	after, p := decodeCursor("wallet", in.Cursor)
	if p != nil {
		return nil, p
	}
	if _, err := s.store.get(ctx, customerEntity, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	accounts, err := ledger.List(ctx, s.deps.Pool, in.ID, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	var page Page[Wallet]
	if len(accounts) > in.Limit {
		accounts = accounts[:in.Limit]
		page.Next = encodeCursor("wallet", accounts[in.Limit-1].Metric)
	}
	page.Items, err = s.view(ctx, accounts)
	return &struct{ Body Page[Wallet] }{page}, err
}

// getWallet also answers for one that nothing was granted to, as long as there
// may be one: it is empty.
func (s *Service) getWallet(ctx context.Context, in *struct{ WalletInput }) (*struct{ Body Wallet }, error) {
	if found := in.check(); found != nil {
		return nil, invalid(found...)
	}
	if _, err := s.store.get(ctx, customerEntity, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	account, ok, err := ledger.Get(ctx, s.deps.Pool, in.key())
	if err == nil && !ok {
		account = ledger.Account{Key: in.key(), Tenant: in.ID, Metric: in.Metric}
		err = sells(ctx, s.deps.Pool, in.ID, in.Metric)
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

func (s *Service) listLedger(ctx context.Context, in *struct {
	WalletInput
	PageInput
}) (*struct{ Body Page[LedgerEntry] }, error) {
	last, p := decodeCursor("ledger", in.Cursor)
	if p != nil {
		return nil, p
	}
	before := int64(0)
	if last != "" {
		var err error
		if before, err = strconv.ParseInt(last, 10, 64); err != nil || before < 1 {
			return nil, invalid(FieldError{"query", "cursor", "must be the next of an earlier page of this list"})
		}
	}
	if _, err := s.store.get(ctx, customerEntity, in.ID); err != nil {
		return nil, customerMissing(err)
	}
	entries, err := ledger.History(ctx, s.deps.Pool, in.key(), before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	var page Page[LedgerEntry]
	if len(entries) > in.Limit {
		entries = entries[:in.Limit]
		page.Next = encodeCursor("ledger", strconv.FormatInt(entries[in.Limit-1].ID, 10))
	}
	page.Items = viewEntries(entries)
	return &struct{ Body Page[LedgerEntry] }{page}, nil
}

// sells is nil if a prepaid rule names the metric for the customer: one of its
// own, as subscriptions write them, or one of every tenant.
func sells(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, customer, metric string) error {
	var one int
	err := q.QueryRow(ctx, `SELECT 1 FROM rules WHERE document->'limit'->>'kind' = 'prepaid' AND document->'subject'->>'value' IN ($1, '*')
		AND document->>'metric' = $2 LIMIT 1`, customer, metric).Scan(&one)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		p := newProblem(http.StatusNotFound, "unknown-metric", "no prepaid quota of a rule or plan names this metric for the customer")
		p.Errors = []FieldError{{"path", "metric", "must be one that a prepaid quota of the customer names; " + printable(metric) + " is none"}}
		return p
	case err != nil:
		return fmt.Errorf("look for prepaid rules: %w", err)
	}
	return nil
}

// noCustomer says which part of the path names nothing.
func noCustomer() *Problem {
	p := newProblem(http.StatusNotFound, "unknown-customer", "there is no customer by this id")
	p.Errors = []FieldError{{"path", "id", "must be the id of a customer"}}
	return p
}

// customerMissing says so where a customer was not found.
func customerMissing(err error) error {
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return noCustomer()
	}
	return err
}
