package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func (s *Service) planResource() resource[sales.Plan, PageInput] {
	return resource[sales.Plan, PageInput]{
		entity: planEntity, path: "/v1/plans", item: "plan", keyField: "id",
		key:       func(p *sales.Plan) *string { return &p.ID },
		version:   func(p *sales.Plan) *int64 { return &p.Version },
		validate:  func(p sales.Plan) []FieldError { return bodyErrors(plan.ValidatePlan(p)) },
		names:     func(p sales.Plan) []given { return []given{{"id", p.ID}} },
		normalize: plan.NormalizePlan,
		unknown:   plan.Unknown,
		then:      s.store.keepVersion,
	}
}

// keepVersion keeps a plan's new version for ever, in the transaction that
// makes it; a deletion is refused while somebody is subscribed to any version.
func (s *store) keepVersion(ctx context.Context, tx pgx.Tx, before, after record) error {
	if after.document == nil {
		return unsubscribed(ctx, tx, "plan", before.key)
	}
	_, err := tx.Exec(ctx, `INSERT INTO plan_versions (plan, version, document, created_at) VALUES ($1, $2, $3::jsonb, $4)`,
		after.key, after.version, string(after.document), s.now())
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
	return newProblem(http.StatusConflict, "subscribed", fmt.Sprintf("the %s has active subscriptions, %s first; end them before", column, subscription))
}

func (s *Service) registerPlanVersions(api huma.API) {
	tags := []string{"plans"}
	register(s, api, huma.Operation{OperationID: "get-plan-version", Method: http.MethodGet, Path: "/v1/plans/{id}/versions/{version}", Tags: tags,
		Summary: "Get a version of a plan", Description: "Every version there ever was stays as it is, also when the plan was deleted."}, nil, s.getPlanVersion)
}

func (s *Service) getPlanVersion(ctx context.Context, in *struct {
	KeyInput
	Version int64 `path:"version" minimum:"1" doc:"The version, counted from 1."`
}) (*document[sales.Plan], error) {
	found, err := readPlans(ctx, s.deps.Pool, []plan.Version{{Plan: in.ID, Number: in.Version}})
	if err != nil {
		return nil, err
	}
	p, ok := found[plan.Version{Plan: in.ID, Number: in.Version}]
	if !ok {
		return nil, notFound()
	}
	return &document[sales.Plan]{ETag: etag(p.Version), Status: http.StatusOK, Body: p}, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readPlans reads versions of plans; those that are not there are left out.
func readPlans(ctx context.Context, q querier, wanted []plan.Version) (map[plan.Version]sales.Plan, error) {
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
