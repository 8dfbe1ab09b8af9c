package history

import (
	"context"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

type usageInput struct {
	api.PageInput
	api.SpanInput
	TenantID string `query:"tenantId" doc:"Only decisions on this tenant's requests."`
	Decision string `query:"decision" enum:"ALLOW,DENY,SHADOW,COMMIT,RELEASE,EXPIRE" doc:"Only this decision."`
}

func (s *Handlers) registerUsage(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "list-usage", Method: http.MethodGet, Path: "/v1/usage", Tags: []string{"usage"},
		Summary: "Decisions, the newest first"}, nil, s.listUsage)
	api.Register(a, huma.Operation{OperationID: "get-decision", Method: http.MethodGet, Path: "/v1/decisions/{id}", Tags: []string{"usage"},
		Summary: "One decision, by the Sluice-Decision-Id of its answer"}, nil, s.getDecision)
}

func (s *Handlers) listUsage(ctx context.Context, in *usageInput) (*struct{ Body api.Page[usage.Event] }, error) {
	if p := in.Check(ctx); p != nil {
		return nil, p
	}
	page, err := s.reader.Search(ctx, usagestore.Query{
		TenantID: in.TenantID, Decision: in.Decision, From: in.From, To: in.To, Limit: in.Limit, Cursor: in.Cursor,
	})
	if err != nil {
		return nil, s.reader.Problem(ctx, err)
	}
	items := make([]usage.Event, len(page.Events)) // an empty page is [], not null
	for i, e := range page.Events {
		items[i] = shown(e)
	}
	return &struct{ Body api.Page[usage.Event] }{api.Page[usage.Event]{Items: items, Next: page.Next}}, nil
}

func (s *Handlers) getDecision(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body usage.Event }, error) {
	event, err := s.reader.Get(ctx, in.ID)
	if err != nil {
		return nil, s.reader.Problem(ctx, err)
	}
	return &struct{ Body usage.Event }{shown(event)}, nil
}

// shown is an event as the API tells it: without what keepers alone need, to bring
// a reservation back to counters that have lost it.
func shown(e usage.Event) usage.Event {
	e.ReservationState = nil
	return e
}
