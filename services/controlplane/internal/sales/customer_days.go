package sales

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

// DayUse is what one counter was charged on one day.
type DayUse struct {
	Day     string `json:"day" doc:"YYYY-MM-DD, by the clock of timezone."`
	Counter string `json:"counter" doc:"The counter with its period, as the customer's usage names it."`
	Amount  int64  `json:"amount" doc:"Units; below 0 where more was given back than used."`
}

type daysInput struct {
	api.KeyInput
	Metric   string    `query:"metric" required:"true" doc:"What was counted."`
	From     time.Time `query:"from" required:"true" doc:"From this time on (RFC 3339)."`
	To       time.Time `query:"to" required:"true" doc:"Before this time (RFC 3339); at most 368 days later."`
	Timezone string    `query:"timezone" doc:"Whose days they are: a name of the IANA database; UTC by default."`
}

func (s *Handlers) registerCustomerUse(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "get-customer-use", Method: http.MethodGet, Path: "/v1/customers/{id}/use", Tags: []string{"customers"},
		Summary: "One customer with its use of the running periods"}, nil, s.customerUse)
	api.Register(a, huma.Operation{OperationID: "list-customer-days", Method: http.MethodGet, Path: "/v1/customers/{id}/days", Tags: []string{"customers"},
		Summary:     "What a customer's quotas were charged, by the day",
		Description: "Summed from usage events, which appear within seconds; the quotas' own totals are those of use."}, nil, s.customerDays)
}

func (s *Handlers) customerUse(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body CustomerUse }, error) {
	found, err := s.customerAndQuotas(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if len(found.customers) == 0 {
		return nil, api.NotFound()
	}
	return &struct{ Body CustomerUse }{CustomerUse{found.customers[0], s.uses(ctx, found)[0]}}, nil
}

func (s *Handlers) customerDays(ctx context.Context, in *daysInput) (*struct{ Body api.Page[DayUse] }, error) {
	zone, err := time.LoadLocation(in.Timezone) // "" is UTC
	if err != nil || in.Timezone == "Local" {
		return nil, api.Invalid(api.InQuery("timezone", "must be a name of the IANA time zone database, such as Europe/Istanbul"))
	}
	q := usagestore.DaysQuery{TenantID: in.ID, Metric: in.Metric, From: in.From, To: in.To, Zone: zone}
	if q.Check() != nil {
		return nil, api.Invalid(api.InQuery("to", "must be after from, and at most 368 days later"))
	}
	if _, err := s.Store.Get(ctx, store.Customers, in.ID); err != nil {
		return nil, err
	}
	sums, err := s.Usage.Days(ctx, q)
	if err != nil {
		return nil, s.Usage.Problem(ctx, err)
	}
	page := api.Page[DayUse]{Items: []DayUse{}}
	for _, d := range sums {
		if strings.Contains(d.Counter, tenantCounter) {
			page.Items = append(page.Items, DayUse(d))
		}
	}
	return &struct{ Body api.Page[DayUse] }{page}, nil
}

// tenantCounter is in the name of each counter of a tenant itself, and of none
// of its users, applications and keys (schemas/redis/KEYS.md).
const tenantCounter = "}:t::"
