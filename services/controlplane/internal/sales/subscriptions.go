package sales

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// subscriptionList narrows the list of subscriptions.
type subscriptionList struct {
	api.PageInput
	Customer    string `query:"customer" doc:"Only subscriptions of this customer."`
	Plan        string `query:"plan" doc:"Only subscriptions to this plan."`
	PlanVersion int64  `query:"planVersion" minimum:"1" doc:"Only subscriptions to this version of their plan."`
	Status      string `query:"status" enum:"active,ended" doc:"Only subscriptions in this state."`
}

func (l subscriptionList) Filters() []store.Filter {
	version := ""
	if l.PlanVersion != 0 {
		version = strconv.FormatInt(l.PlanVersion, 10)
	}
	return []store.Filter{{Where: `customer = $%d`, Value: l.Customer}, {Where: `plan = $%d`, Value: l.Plan}, {Where: `plan_version = $%d::text::bigint`, Value: version}, {Where: `status = $%d`, Value: l.Status}}
}

func (s *Handlers) registerSubscriptions(a *api.API) {
	read := resource.Reader[sales.Subscription, subscriptionList]{Store: s.Store, Entity: store.Subscriptions}
	tags := []string{"subscriptions"}
	body := reflect.TypeFor[sales.Subscription]()
	const path, one = "/v1/subscriptions", "/v1/subscriptions/{id}"
	api.Register(a, huma.Operation{OperationID: "create-subscription", Method: http.MethodPost, Path: path, Tags: tags,
		Summary: "Subscribe a customer to a plan", DefaultStatus: http.StatusCreated,
		Description: "Writes a rule for each template of the plan in the same transaction. A customer has one active subscription to a plan, and any number to plans that count other metrics (409)."}, body, s.subscribe)
	api.Register(a, huma.Operation{OperationID: "list-subscriptions", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "List subscriptions, by id"}, nil, read.List)
	api.Register(a, huma.Operation{OperationID: "get-subscription", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get a subscription"}, nil, read.Get)
	api.Register(a, huma.Operation{OperationID: "put-subscription", Method: http.MethodPut, Path: one, Tags: tags,
		Summary:     "Change a subscription's plan or plan version, or let it end with the period",
		Description: "What was used stays used: counters know no plan."}, body, s.changeSubscription)
	api.Register(a, huma.Operation{OperationID: "end-subscription", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "End a subscription now", DefaultStatus: http.StatusNoContent,
		Description: "Deletes its rules. The subscription itself stays, with status ended: invoices are made of it."}, nil, s.endSubscription)
}

// wantedSubscription reads the body of a request. What only the control plane
// writes is left aside.
func wantedSubscription(ctx context.Context, id string) (sales.Subscription, error) {
	var in sales.Subscription
	if p := api.Decode(ctx, &in); p != nil {
		return in, p
	}
	var found []api.FieldError
	add := func(field, message string) { found = append(found, api.InBody(field, message)) }
	switch {
	case id == "" && in.ID != "":
		add("id", madeHere)
	case in.ID != "" && in.ID != id:
		add("id", "must be the one in the path, or be left out")
	}
	if in.Customer == "" {
		add("customer", "must be the id of a customer")
	}
	if in.Plan == "" {
		add("plan", "must be the id of a plan")
	}
	if in.PlanVersion < 0 {
		add("planVersion", "must be a version of the plan; without it, it is the newest")
	}
	// A caller that gives a time must not be left to think that it holds.
	if id == "" && in.StartedAt != nil {
		add("startedAt", madeHere)
	}
	if id == "" && in.EndsAt != nil {
		add("endsAt", madeHere)
	}
	if found != nil {
		return in, api.Invalid(found...)
	}
	return in, nil
}

const madeHere = "is made by the control plane; leave it out"

// keepTimes refuses times that are neither those that the subscription had nor
// those that it has now: they follow from what is done, and when.
func keepTimes(had, has, given sales.Subscription) error {
	var found []api.FieldError
	for _, t := range []struct {
		field          string
		given, had, is *time.Time
	}{{"startedAt", given.StartedAt, had.StartedAt, has.StartedAt}, {"endsAt", given.EndsAt, had.EndsAt, has.EndsAt}} {
		if t.given == nil || t.had != nil && t.had.Equal(*t.given) || t.is != nil && t.is.Equal(*t.given) {
			continue
		}
		right := "there is none: leave it out"
		if t.had != nil {
			right = "must be " + api.Instant(*t.had) + ", as GET answers it, or be left out"
		}
		found = append(found, api.InBody(t.field, fmt.Sprintf("is the control plane's, and %s; given is %s", right, api.Instant(*t.given))))
	}
	if found != nil {
		return api.Invalid(found...)
	}
	return nil
}

func (s *Handlers) subscribe(ctx context.Context, _ *struct{}) (*api.Document[sales.Subscription], error) {
	in, err := wantedSubscription(ctx, "")
	if err != nil {
		return nil, err
	}
	id := "sub_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	var stored store.Record
	absent := api.Invalid(api.InBody("customer", "must be a customer that there is"))
	err = s.sell(ctx, api.Actor(ctx), in.Customer, absent, func(x *sale) error {
		// One that has just ended by itself must not stand in the way.
		if err := x.settleAll(ctx, `customer = $1 AND status = 'active' AND due_at <= $2`, in.Customer, x.at); err != nil {
			return err
		}
		sub := sales.Subscription{ID: id, Customer: in.Customer, Status: sales.StatusActive, StartedAt: &x.at}
		if err := x.change(ctx, &sub, in); err != nil {
			return err
		}
		var err error
		stored, err = x.put(ctx, sub)
		return err
	})
	if err != nil {
		return nil, err
	}
	out, err := resource.Show[sales.Subscription](stored)
	if err == nil {
		out.Status, out.Location = http.StatusCreated, "/v1/subscriptions/"+url.PathEscape(id)
	}
	return out, err
}

// change puts what a caller wants into a subscription that is active.
func (x *sale) change(ctx context.Context, s *sales.Subscription, want sales.Subscription) error {
	p, err := x.livePlan(ctx, want.Plan, want.PlanVersion)
	if err != nil {
		return err
	}
	if s.Plan != p.ID || s.PlanVersion != p.Version {
		s.Plan, s.PlanVersion = p.ID, p.Version
		if err := x.collides(ctx, *s); err != nil {
			return err
		}
		s.Phases = append(s.Phases, sales.Phase{Plan: p.ID, PlanVersion: p.Version, From: x.at})
	}
	switch {
	case !want.CancelAtPeriodEnd:
		s.EndsAt = nil
	case !s.CancelAtPeriodEnd:
		running, err := plan.PeriodAt(p, x.customer, x.at)
		if err != nil {
			return err
		}
		s.EndsAt = &running.End
	}
	s.CancelAtPeriodEnd = want.CancelAtPeriodEnd
	return nil
}

func (s *Handlers) changeSubscription(ctx context.Context, in *api.ChangeInput) (*api.Document[sales.Subscription], error) {
	want, err := wantedSubscription(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.withSubscription(ctx, in, func(x *sale, sub *sales.Subscription) error {
		if sub.Customer != want.Customer {
			return api.Invalid(api.InBody("customer", "cannot be changed; subscribe the other customer"))
		}
		had := *sub
		if err := x.change(ctx, sub, want); err != nil {
			return err
		}
		return keepTimes(had, *sub, want)
	})
}

func (s *Handlers) endSubscription(ctx context.Context, in *api.ChangeInput) (*struct{}, error) {
	_, err := s.withSubscription(ctx, in, func(x *sale, sub *sales.Subscription) error {
		sub.Status, sub.EndsAt = sales.StatusEnded, &x.at
		return nil
	})
	return nil, err
}

// withSubscription changes an active subscription under its precondition.
func (s *Handlers) withSubscription(ctx context.Context, in *api.ChangeInput, change func(*sale, *sales.Subscription) error) (*api.Document[sales.Subscription], error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	seen, err := s.Store.Get(ctx, store.Subscriptions, in.ID) // whose it is never changes
	if err != nil {
		return nil, err
	}
	shown, err := resource.Show[sales.Subscription](seen)
	if err != nil {
		return nil, err
	}
	var stored store.Record
	err = s.sell(ctx, api.Actor(ctx), shown.Body.Customer, api.NotFound(), func(x *sale) error {
		sub, version, err := x.lockSubscription(ctx, in.ID)
		if err != nil {
			return err
		}
		if p := cond.Holds(version); p != nil {
			return p
		}
		if sub.Status == sales.StatusEnded || sub.EndsAt != nil && !x.at.Before(*sub.EndsAt) {
			return api.NewProblem(http.StatusConflict, "ended", fmt.Sprintf("subscription %s has ended, which is final; subscribe anew", sub.ID))
		}
		if err := change(x, &sub); err != nil {
			return err
		}
		stored, err = x.put(ctx, sub)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resource.Show[sales.Subscription](stored)
}
