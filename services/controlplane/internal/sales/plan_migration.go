package sales

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Move asks to take customers from one version of a plan to another.
type Move struct {
	From      int64    `json:"from" doc:"The version that customers are taken from."`
	To        int64    `json:"to" doc:"The version that they are taken to."`
	Customers []string `json:"customers,omitempty" doc:"Who is moved; at most 1000. In its place: all."`
	All       bool     `json:"all,omitempty" doc:"Every customer of version from is moved."`
	Preview   bool     `json:"preview,omitempty" doc:"Only say what would change; nothing is written."`
	Cursor    string   `json:"cursor,omitempty" doc:"The next of the answer before; absent to begin."`
}

// Moved is what a call of a move has done, or would do.
type Moved struct {
	Preview   bool            `json:"preview,omitempty"`
	Customers []MovedCustomer `json:"customers" nullable:"false" doc:"Those that this call has moved, previewed or refused, by id."`
	Remaining int             `json:"remaining" doc:"How many are left on version from, the refused among them."`
	Next      string          `json:"next,omitempty" doc:"Cursor to go on with; absent when the move is done."`
}

// MovedCustomer is one customer of a move.
type MovedCustomer struct {
	Customer     string           `json:"customer"`
	Subscription string           `json:"subscription,omitempty"`
	Refused      string           `json:"refused,omitempty" doc:"Why this customer was left as it was."`
	Rules        []RuleChange     `json:"rules,omitempty" doc:"The rules that change."`
	Overrides    []OverrideChange `json:"overrides,omitempty" doc:"The prorated quotas that change."`
}

// RuleChange is a rule before and after; absent is none.
type RuleChange struct {
	ID     string      `json:"id"`
	Before *rules.Rule `json:"before,omitempty"`
	After  *rules.Rule `json:"after,omitempty"`
}

// OverrideChange is an override before and after; absent is none.
type OverrideChange struct {
	ID     string              `json:"id"`
	Before *overrides.Override `json:"before,omitempty"`
	After  *overrides.Override `json:"after,omitempty"`
}

const maxNamed = 1000 // customers that one move names

func (s *Handlers) registerMoves(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "move-customers", Method: http.MethodPost, Path: "/v1/plans/{id}/moves", Tags: []string{"plans"},
		Summary: "Move customers from one version of a plan to another, or preview it",
		Description: "Moves some at a time, in transactions of at most 500 rows; repeat the call with next as cursor until there is none. " +
			"It is safe to repeat from the start: whoever has been moved is no longer on version from."}, reflect.TypeFor[Move](), s.moveCustomers)
}

func (m Move) check() []api.FieldError {
	var found []api.FieldError
	add := func(field, message string) { found = append(found, api.InBody(field, message)) }
	if m.From < 1 {
		add("from", "must be a version of the plan")
	}
	if m.To < 1 || m.To == m.From {
		add("to", "must be another version of the plan")
	}
	if m.All == (len(m.Customers) > 0) {
		add("customers", "must name customers, or all must be true")
	}
	if len(m.Customers) > maxNamed {
		add("customers", fmt.Sprintf("must be at most %d; move them in parts", maxNamed))
	}
	return found
}

func (s *Handlers) moveCustomers(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body Moved }, error) {
	var m Move
	if p := api.Decode(ctx, &m); p != nil {
		return nil, p
	}
	if found := m.check(); found != nil {
		return nil, api.Invalid(found...)
	}
	after, p := api.DecodeCursor("move", m.Cursor)
	if p != nil {
		return nil, api.Invalid(api.InBody("cursor", "must be the next of an answer to this move"))
	}
	if _, err := s.Store.Get(ctx, store.Plans, in.ID); err != nil {
		return nil, err
	}
	from, to := plan.Version{Plan: in.ID, Number: m.From}, plan.Version{Plan: in.ID, Number: m.To}
	plans, err := readPlans(ctx, s.Store.Pool, []plan.Version{from, to})
	if err != nil {
		return nil, err
	}
	for field, v := range map[string]plan.Version{"from": from, "to": to} {
		if _, ok := plans[v]; !ok {
			return nil, api.Invalid(api.InBody(field, "must be a version of the plan"))
		}
	}
	job := mover{Handlers: s, move: m, plan: in.ID, to: plans[to], rows: rowsOf(plans[from], plans[to])}
	out, err := job.run(ctx, after)
	return &struct{ Body Moved }{out}, err
}

// rowsOf bounds the rows that one customer's move writes: a subscription, and
// for each rule that goes or comes the rule and perhaps an override; each with
// its outbox and audit rows.
func rowsOf(from, to sales.Plan) int { return 2 + 6*(len(from.Rules)+len(to.Rules)) }
