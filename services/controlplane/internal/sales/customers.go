package sales

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func (s *Handlers) customerResource() resource.Resource[sales.Customer, resource.Plain] {
	return resource.Resource[sales.Customer, resource.Plain]{
		Entity: store.Customers, Path: "/v1/customers", Item: "customer", KeyField: "id",
		ID:        func(c *sales.Customer) *string { return &c.ID },
		Version:   func(c *sales.Customer) *int64 { return &c.Version },
		Validate:  func(c sales.Customer) []api.FieldError { return api.BodyErrors(plan.ValidateCustomer(c)) },
		Names:     func(c sales.Customer) []api.Name { return []api.Name{{Field: "id", Value: c.ID}} },
		Normalize: func(c sales.Customer) sales.Customer { return c },
		Then:      s.customerChanged,
		OwnList:   true,
	}
}

// customerChanged follows a customer's change in what the customer is
// subscribed to: a deletion is refused while that is something, and another
// timezone moves the periods of rules whose plan names none. A customer with
// accounts is not deleted, nor does another one get its id.
func (s *Handlers) customerChanged(ctx context.Context, tx pgx.Tx, before, after store.Record) error {
	switch {
	case after.Document == nil:
		if err := unsubscribed(ctx, tx, "customer", before.Key); err != nil {
			return err
		}
		return unaccounted(ctx, tx, before.Key, "the customer stays, since its accounts do")
	case before.Document == nil:
		return unaccounted(ctx, tx, after.Key, "the id was another customer's, whose accounts stay; a new customer needs a new id")
	}
	var was, is sales.Customer
	if err := json.Unmarshal(before.Document, &was); err != nil {
		return fmt.Errorf("decode customer before: %w", err)
	}
	if err := json.Unmarshal(after.Document, &is); err != nil {
		return fmt.Errorf("decode customer after: %w", err)
	}
	if is.Currency != "" && was.Currency != is.Currency {
		if err := sameCurrency(ctx, tx, is); err != nil {
			return err
		}
	}
	if was.Timezone == is.Timezone {
		return nil
	}
	sale := s.sale(tx, api.Actor(ctx))
	sale.customer = is
	return sale.settleAll(ctx, `customer = $1 AND status = 'active'`, is.ID)
}

// unaccounted refuses where units were bought, or invoices written or still to be
// written, under an id: balance and invoices are of whoever has the id, so they
// are neither taken from one customer nor given to another. The caller holds the
// lock that topping up and invoicing take too.
func unaccounted(ctx context.Context, tx pgx.Tx, id, why string) error {
	var entries, invoices int64
	err := tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM wallet_ledger l JOIN wallets w ON w.key = l.wallet WHERE w.customer = $1),
		(SELECT count(*) FROM invoices WHERE customer = $1)`, id).Scan(&entries, &invoices)
	switch {
	case err != nil:
		return fmt.Errorf("look for accounts: %w", err)
	case entries+invoices == 0:
		return unbilled(ctx, tx, id, why)
	}
	return api.NewProblem(http.StatusConflict, "has-accounts", fmt.Sprintf("%s: %d ledger entries, %d invoices", why, entries, invoices))
}

// unbilled refuses where a subscription has ended of which there is time that is on
// no invoice, though its plan has a fee or prices: billing works out only what
// customers hold who are there, so that it would be lost.
func unbilled(ctx context.Context, tx pgx.Tx, id, why string) error {
	rows, err := tx.Query(ctx, `SELECT document, since FROM (
		SELECT s.key, s.document, coalesce(i.through, (s.document->>'startedAt')::timestamptz) AS since, (s.document->>'endsAt')::timestamptz AS until
		FROM subscriptions s LEFT JOIN invoiced_subscriptions i ON i.subscription = s.key WHERE s.customer = $1 AND s.status = 'ended') ended
		WHERE since < until ORDER BY key`, id)
	if err != nil {
		return fmt.Errorf("look for what is still to be invoiced: %w", err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Document sales.Subscription
		Since    time.Time
	}])
	if err != nil {
		return fmt.Errorf("look for what is still to be invoiced: %w", err)
	}
	for _, s := range ended {
		owed, err := costs(ctx, tx, s.Document)
		switch {
		case err != nil:
			return err
		case owed != "":
			return api.NewProblem(http.StatusConflict, "unbilled", fmt.Sprintf("%s: subscription %s to plan %s is still to be invoiced from %s to %s. "+
				"Billing does so where it runs (sluice run --target=billing): within a minute, or where nothing is owed in the end, when the days of grace are over",
				why, s.Document.ID, owed, api.Instant(s.Since), api.Instant(*s.Document.EndsAt)))
		}
	}
	return nil
}

// costs names the last plan of a subscription that is not free, empty if all are.
func costs(ctx context.Context, tx pgx.Tx, s sales.Subscription) (string, error) {
	versions := make([]plan.Version, len(s.Phases))
	for i, p := range s.Phases {
		versions[i] = plan.VersionOf(p)
	}
	plans, err := readPlans(ctx, tx, versions)
	if err != nil {
		return "", err
	}
	for _, v := range slices.Backward(versions) {
		if p, ok := plans[v]; !ok || !plan.Free(p) {
			return v.Plan, nil
		}
	}
	return "", nil
}

// sameCurrency refuses a currency that is not the one of what the customer is
// subscribed to.
func sameCurrency(ctx context.Context, tx pgx.Tx, c sales.Customer) error {
	var subscription, name, currency string
	err := tx.QueryRow(ctx, `SELECT s.key, s.plan, v.document->>'currency' FROM subscriptions s JOIN plan_versions v ON v.plan = s.plan AND v.version = s.plan_version
		WHERE s.customer = $1 AND s.status = 'active' AND v.document->>'currency' <> $2 ORDER BY s.key LIMIT 1`, c.ID, c.Currency).Scan(&subscription, &name, &currency)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read currencies of subscriptions: %w", err)
	}
	p := api.NewProblem(http.StatusConflict, "subscribed", fmt.Sprintf("the customer pays for plan %s in %s: %s", name, currency, subscription))
	p.Errors = []api.FieldError{api.InBody("currency", "must be "+currency+" while the customer is subscribed to plan "+name)}
	return p
}
