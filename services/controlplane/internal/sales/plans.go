package sales

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/advice"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func (s *Handlers) planResource() resource.Resource[sales.Plan, resource.Plain] {
	return resource.Resource[sales.Plan, resource.Plain]{
		Entity: store.Plans, Path: "/v1/plans", Item: "plan", KeyField: "id",
		ID:        func(p *sales.Plan) *string { return &p.ID },
		Version:   func(p *sales.Plan) *int64 { return &p.Version },
		Validate:  func(p sales.Plan) []api.FieldError { return api.BodyErrors(plan.ValidatePlan(p)) },
		Names:     func(p sales.Plan) []api.Name { return []api.Name{{Field: "id", Value: p.ID}} },
		Normalize: plan.NormalizePlan,
		Unknown:   plan.Unknown,
		Then:      s.keepVersion,
		Warn:      warnOfPlans,
	}
}

// warnOfPlans finds rules of plans whose scope no request matches.
func warnOfPlans(ctx context.Context, q store.Querier, plans []sales.Plan) ([]api.Warning, error) {
	var scopes []advice.Scope
	for _, p := range plans {
		for i, r := range p.Rules {
			at := fmt.Sprintf("rules[%d]", i)
			scopes = append(scopes, advice.Scope{ID: p.ID, At: at + ".", What: "plan " + p.ID + ": " + at, Scope: r.Scope})
		}
	}
	return advice.Scopes(ctx, q, scopes)
}

// keepVersion keeps a plan's new version for ever, in the transaction that
// makes it; a deletion is refused while somebody is subscribed to any version.
func (s *Handlers) keepVersion(ctx context.Context, tx pgx.Tx, before, after store.Record) error {
	if after.Document == nil {
		return unsubscribed(ctx, tx, "plan", before.Key)
	}
	_, err := tx.Exec(ctx, `INSERT INTO plan_versions (plan, version, document, created_at) VALUES ($1, $2, $3::jsonb, $4)`,
		after.Key, after.Version, string(after.Document), s.Store.Now())
	if err != nil {
		return fmt.Errorf("keep version of plan: %w", err)
	}
	return nil
}

// unsubscribed refuses while there are active subscriptions of a customer or to
// a plan. The caller holds the lock that subscribing takes too.
func unsubscribed(ctx context.Context, tx pgx.Tx, column, key string) error {
	var subscription string
	err := tx.QueryRow(ctx, `SELECT key FROM subscriptions WHERE `+column+` = $1 AND status = 'active' ORDER BY key LIMIT 1`, key).Scan(&subscription)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for subscriptions: %w", err)
	}
	return api.NewProblem(http.StatusConflict, "subscribed", fmt.Sprintf("the %s has active subscriptions, %s first; end them before", column, subscription))
}

func (s *Handlers) registerPlanVersions(a *api.API) {
	tags := []string{"plans"}
	api.Register(a, huma.Operation{OperationID: "get-plan-version", Method: http.MethodGet, Path: "/v1/plans/{id}/versions/{version}", Tags: tags,
		Summary: "Get a version of a plan", Description: "Every version there ever was stays as it is, also when the plan was deleted."}, nil, s.getPlanVersion)
}

func (s *Handlers) getPlanVersion(ctx context.Context, in *struct {
	api.KeyInput
	Version int64 `path:"version" minimum:"1" doc:"The version, counted from 1."`
}) (*api.Document[sales.Plan], error) {
	found, err := readPlans(ctx, s.Store.Pool, []plan.Version{{Plan: in.ID, Number: in.Version}})
	if err != nil {
		return nil, err
	}
	p, ok := found[plan.Version{Plan: in.ID, Number: in.Version}]
	if !ok {
		return nil, api.NotFound()
	}
	return &api.Document[sales.Plan]{ETag: api.ETag(p.Version), Status: http.StatusOK, Body: p}, nil
}

// readPlans reads versions of plans; those that are not there are left out.
func readPlans(ctx context.Context, q store.Querier, wanted []plan.Version) (map[plan.Version]sales.Plan, error) {
	ids, numbers := make([]string, len(wanted)), make([]int64, len(wanted))
	for i, v := range wanted {
		ids[i], numbers[i] = v.Plan, v.Number
	}
	rows, err := q.Query(ctx, `SELECT plan, version, document FROM plan_versions
		WHERE (plan, version) IN (SELECT * FROM unnest($1::text[], $2::bigint[]))`, ids, numbers)
	if err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	out := make(map[plan.Version]sales.Plan, len(wanted))
	var v plan.Version
	var p sales.Plan
	_, err = pgx.ForEachRow(rows, []any{&v.Plan, &v.Number, &p}, func() error {
		out[v] = p
		p = sales.Plan{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	return out, nil
}
