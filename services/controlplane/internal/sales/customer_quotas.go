package sales

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// CustomerUse is a customer with what was used in the running periods.
type CustomerUse struct {
	sales.Customer
	Usage []Use `json:"usage" nullable:"false" doc:"One entry a quota counter, by metric."`
}

// customerPage is the page of customers, which may be longer than others.
type customerPage struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many items at most."`
	Cursor string `query:"cursor" doc:"The next of the page before; absent for the first page."`
}

func (s *Handlers) registerCustomerList(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "list-customers", Method: http.MethodGet, Path: "/v1/customers", Tags: []string{"customers"},
		Summary: "List customers, by id, with their use of the running periods",
		Description: "Use is that of the tenant's quotas: those of its subscriptions, of rules that name it, and of rules for every tenant; of prepaid ones with the balance. " +
			"It is read from the counters; while those are away, or know less, from the last checkpoints, and source says so."}, nil, s.listCustomers)
}

func (s *Handlers) listCustomers(ctx context.Context, in *customerPage) (*struct{ Body api.Page[CustomerUse] }, error) {
	after, p := api.DecodeCursor(store.Customers.Kind, in.Cursor)
	if p != nil {
		return nil, p
	}
	found, err := s.customersAndQuotas(ctx, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	if found.unreadable != nil {
		s.Log.WarnContext(ctx, "customers are listed without what cannot be read", "error", errors.Join(found.unreadable...))
	}
	out := api.Page[CustomerUse]{Items: make([]CustomerUse, 0, len(found.customers))}
	if len(found.customers) > in.Limit {
		found.customers = found.customers[:in.Limit]
		out.Next = api.EncodeCursor(store.Customers.Kind, found.customers[in.Limit-1].ID)
	}
	uses := s.uses(ctx, found)
	for i, c := range found.customers {
		out.Items = append(out.Items, CustomerUse{c, uses[i]})
	}
	return &struct{ Body api.Page[CustomerUse] }{out}, nil
}

// quotaPage is all that Postgres knows of a page of customers and their quotas.
type quotaPage struct {
	customers []sales.Customer
	// rules and overrides are by tenant; rules of any tenant lie under "*".
	rules     map[string][]*rule.Compiled
	overrides map[string][]*rule.CompiledOverride
	// checkpoints are the floor of what was used, by counter.
	checkpoints map[string]redisstore.Totals
	// granted is what wallets were topped up by, by counter.
	granted map[string]int64
	// unreadable are rules and overrides that gateways cannot read either; the
	// rest is shown without them.
	unreadable []error
}

// Kinds of row in the one statement of a page.
const (
	rowCustomer = iota
	rowRule
	rowOverride
	rowCheckpoint
	rowWallet
)

// quotasSQL reads a page of customers with everything about their quotas, in one
// statement. Checkpoints are narrowed to periods that may be running ($3) and to
// counters of the tenant itself.
const quotasSQL = `WITH page AS MATERIALIZED (
		SELECT key, document FROM customers WHERE document IS NOT NULL AND (key > $1 AND $4 OR key = $1 AND NOT $4) ORDER BY key LIMIT $2)
	SELECT 0 AS what, key COLLATE "C" AS key, document::text AS document, 0 AS consumed, 0 AS refunded, 0 AS forfeited FROM page
	UNION ALL SELECT 1, document->'subject'->>'value', document::text, 0, 0, 0 FROM rules
		WHERE document->'subject'->>'kind' = 'tenant' AND document->'subject'->>'value' IN (SELECT key COLLATE "default" FROM page UNION ALL SELECT '*')
		AND coalesce(document->'limit'->>'algorithm', 'quota') = 'quota'
	UNION ALL SELECT 2, document->'subject'->>'value', document::text, 0, 0, 0 FROM overrides
		WHERE document->'subject'->>'kind' = 'tenant' AND document->'subject'->>'value' IN (SELECT key COLLATE "default" FROM page)
	UNION ALL SELECT 3, c.counter, '', c.consumed, c.refunded, c.forfeited FROM page JOIN checkpoints c
		ON c.tenant = page.key COLLATE "default" AND c.period = ANY($3) AND strpos(c.counter, '}:t::') > 0
	UNION ALL SELECT 4, w.customer, w.metric, w.granted, 0, w.forfeited FROM page JOIN wallets w ON w.customer = page.key
	ORDER BY 1, 2`

// customersAndQuotas reads the page of customers after a key.
func (s *Handlers) customersAndQuotas(ctx context.Context, after string, most int) (quotaPage, error) {
	return s.quotaPage(ctx, after, most, true)
}

// customerAndQuotas reads a page of one customer, or of none.
func (s *Handlers) customerAndQuotas(ctx context.Context, id string) (quotaPage, error) {
	return s.quotaPage(ctx, id, 1, false)
}

func (s *Handlers) quotaPage(ctx context.Context, key string, most int, following bool) (quotaPage, error) {
	page := quotaPage{
		rules: map[string][]*rule.Compiled{}, overrides: map[string][]*rule.CompiledOverride{},
		checkpoints: map[string]redisstore.Totals{}, granted: map[string]int64{},
	}
	// A prepaid counter has no period.
	rows, err := s.Store.Pool.Query(ctx, quotasSQL, key, most, append(period.RunningIDs(s.Store.Now()), ""), following)
	if err != nil {
		return page, fmt.Errorf("list customers: %w", err)
	}
	var what int
	var name, document string
	var totals redisstore.Totals
	_, err = pgx.ForEachRow(rows, []any{&what, &name, &document, &totals.Consumed, &totals.Refunded, &totals.Forfeited}, func() error {
		return page.add(what, name, []byte(document), totals)
	})
	if err != nil {
		return page, fmt.Errorf("list customers: %w", err)
	}
	return page, nil
}

func (p *quotaPage) add(what int, key string, document []byte, totals redisstore.Totals) error {
	switch what {
	case rowCustomer:
		var c sales.Customer
		if err := json.Unmarshal(document, &c); err != nil {
			return fmt.Errorf("decode customer %s: %w", key, err)
		}
		p.customers = append(p.customers, c)
	case rowRule:
		c, err := rule.Decode(document)
		if err != nil {
			p.unreadable = append(p.unreadable, fmt.Errorf("rule of tenant %s: %w", key, err))
			return nil
		}
		p.rules[key] = append(p.rules[key], c)
	case rowOverride:
		o, err := rule.DecodeOverride(document)
		if err != nil {
			p.unreadable = append(p.unreadable, fmt.Errorf("override of tenant %s: %w", key, err))
			return nil
		}
		p.overrides[key] = append(p.overrides[key], o)
	case rowCheckpoint:
		p.checkpoints[key] = totals
	case rowWallet: // after its checkpoint; document is the metric, consumed what was granted
		p.addWallet(rule.WalletCounter(key, string(document)), totals.Consumed, totals.Forfeited)
	}
	return nil
}

// addWallet notes what was granted; the ledger knows no less of what was
// forfeited than a checkpoint does.
func (p *quotaPage) addWallet(counter string, granted, forfeited int64) {
	p.granted[counter] = granted
	floor := p.checkpoints[counter]
	floor.Forfeited = max(floor.Forfeited, forfeited)
	p.checkpoints[counter] = floor
}
