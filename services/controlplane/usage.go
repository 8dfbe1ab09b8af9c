package controlplane

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

type usageInput struct {
	PageInput
	SpanInput
	TenantID string `query:"tenantId" doc:"Only decisions on this tenant's requests."`
	Decision string `query:"decision" enum:"ALLOW,DENY,SHADOW,COMMIT,RELEASE,EXPIRE" doc:"Only this decision."`
}

func (s *Service) registerUsage(api huma.API) {
	register(s, api, huma.Operation{OperationID: "list-usage", Method: http.MethodGet, Path: "/v1/usage", Tags: []string{"usage"},
		Summary: "Decisions, the newest first"}, nil, s.listUsage)
	register(s, api, huma.Operation{OperationID: "get-decision", Method: http.MethodGet, Path: "/v1/decisions/{id}", Tags: []string{"usage"},
		Summary: "One decision, by the Sluice-Decision-Id of its answer"}, nil, s.getDecision)
}

func (s *Service) listUsage(ctx context.Context, in *usageInput) (*struct{ Body Page[usage.Event] }, error) {
	if p := in.check(ctx); p != nil {
		return nil, p
	}
	page, err := s.deps.Usage.Search(ctx, usagestore.Query{
		TenantID: in.TenantID, Decision: in.Decision, From: in.From, To: in.To, Limit: in.Limit, Cursor: in.Cursor,
	})
	if err != nil {
		return nil, s.usageProblem(ctx, err)
	}
	items := make([]usage.Event, len(page.Events)) // an empty page is [], not null
	for i, e := range page.Events {
		items[i] = shown(e)
	}
	return &struct{ Body Page[usage.Event] }{Page[usage.Event]{Items: items, Next: page.Next}}, nil
}

func (s *Service) getDecision(ctx context.Context, in *struct{ KeyInput }) (*struct{ Body usage.Event }, error) {
	event, err := s.deps.Usage.Get(ctx, in.ID)
	if err != nil {
		return nil, s.usageProblem(ctx, err)
	}
	return &struct{ Body usage.Event }{shown(event)}, nil
}

// shown is an event as the API tells it: without what keepers alone need, to bring
// a reservation back to counters that have lost it.
func shown(e usage.Event) usage.Event {
	e.ReservationState = nil
	return e
}

// usageProblem reads the store's sentinels. Whatever else goes wrong there is
// the store's trouble, and may pass.
func (s *Service) usageProblem(ctx context.Context, err error) *Problem {
	switch {
	case errors.Is(err, usagestore.ErrNotFound):
		return newProblem(http.StatusNotFound, "not-found", "there is no such decision; one just made appears within seconds")
	case errors.Is(err, usagestore.ErrBadQuery):
		return invalid(FieldError{"query", "cursor", "must be the next of an earlier page of this query"})
	}
	s.deps.Log.WarnContext(ctx, "usage store unavailable", "error", err)
	return unavailable("the usage store cannot be reached")
}
