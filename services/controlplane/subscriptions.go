package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// subscriptionList narrows the list of subscriptions.
type subscriptionList struct {
	PageInput
	Customer    string `query:"customer" doc:"Only subscriptions of this customer."`
	Plan        string `query:"plan" doc:"Only subscriptions to this plan."`
	PlanVersion int64  `query:"planVersion" minimum:"1" doc:"Only subscriptions to this version of their plan."`
	Status      string `query:"status" enum:"active,ended" doc:"Only subscriptions in this state."`
}

func (l subscriptionList) filters() []filter {
	version := ""
	if l.PlanVersion != 0 {
		version = strconv.FormatInt(l.PlanVersion, 10)
	}
	return []filter{{`customer = $%d`, l.Customer}, {`plan = $%d`, l.Plan}, {`plan_version = $%d::text::bigint`, version}, {`status = $%d`, l.Status}}
}

// subscriptions are the handlers; reading is every resource's.
type subscriptions = operations[sales.Subscription, subscriptionList]

func (s *Service) registerSubscriptions(api huma.API) {
	o := subscriptions{s, resource[sales.Subscription, subscriptionList]{entity: subscriptionEntity}}
	tags := []string{"subscriptions"}
	body := reflect.TypeFor[sales.Subscription]()
	const path, one = "/v1/subscriptions", "/v1/subscriptions/{id}"
	register(s, api, huma.Operation{OperationID: "create-subscription", Method: http.MethodPost, Path: path, Tags: tags,
		Summary: "Subscribe a customer to a plan", DefaultStatus: http.StatusCreated,
		Description: "Writes a rule for each template of the plan in the same transaction. A customer has one active subscription to a plan, and any number to plans that count other metrics (409)."}, body, s.subscribe)
	register(s, api, huma.Operation{OperationID: "list-subscriptions", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "List subscriptions, by id"}, nil, o.list)
	register(s, api, huma.Operation{OperationID: "get-subscription", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get a subscription"}, nil, o.get)
	register(s, api, huma.Operation{OperationID: "put-subscription", Method: http.MethodPut, Path: one, Tags: tags,
		Summary:     "Change a subscription's plan or plan version, or let it end with the period",
		Description: "What was used stays used: counters know no plan."}, body, s.changeSubscription)
	register(s, api, huma.Operation{OperationID: "end-subscription", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "End a subscription now", DefaultStatus: http.StatusNoContent,
		Description: "Deletes its rules. The subscription itself stays, with status ended: invoices are made of it."}, nil, s.endSubscription)
}

// wantedSubscription reads the body of a request. What only the control plane
// writes is left aside.
func wantedSubscription(ctx context.Context, id string) (sales.Subscription, error) {
	var in sales.Subscription
	if p := decodeBody(callOf(ctx).body, &in); p != nil {
		return in, p
	}
	var found []FieldError
	add := func(field, message string) { found = append(found, FieldError{"body", field, message}) }
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
		return in, invalid(found...)
	}
	return in, nil
}

const madeHere = "is made by the control plane; leave it out"

// keepTimes refuses times that are neither those that the subscription had nor
// those that it has now: they follow from what is done, and when.
func keepTimes(had, has, given sales.Subscription) error {
	var found []FieldError
	for _, t := range []struct {
		field          string
		given, had, is *time.Time
	}{{"startedAt", given.StartedAt, had.StartedAt, has.StartedAt}, {"endsAt", given.EndsAt, had.EndsAt, has.EndsAt}} {
		if t.given == nil || t.had != nil && t.had.Equal(*t.given) || t.is != nil && t.is.Equal(*t.given) {
			continue
		}
		right := "there is none: leave it out"
		if t.had != nil {
			right = "must be " + instant(*t.had) + ", as GET answers it, or be left out"
		}
		found = append(found, FieldError{"body", t.field, fmt.Sprintf("is the control plane's, and %s; given is %s", right, instant(*t.given))})
	}
	if found != nil {
		return invalid(found...)
	}
	return nil
}

func (s *Service) subscribe(ctx context.Context, _ *struct{}) (*document[sales.Subscription], error) {
	in, err := wantedSubscription(ctx, "")
	if err != nil {
		return nil, err
	}
	id := "sub_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	var stored record
	absent := invalid(FieldError{"body", "customer", "must be a customer that there is"})
	err = s.store.sell(ctx, callOf(ctx).who.name, in.Customer, absent, func(x *sale) error {
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
	out, err := showSubscription(s, stored)
	if err == nil {
		out.Status, out.Location = http.StatusCreated, "/v1/subscriptions/"+url.PathEscape(id)
	}
	return out, err
}

func showSubscription(s *Service, r record) (*document[sales.Subscription], error) {
	return subscriptions{s, resource[sales.Subscription, subscriptionList]{entity: subscriptionEntity}}.answer(r)
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

func (s *Service) changeSubscription(ctx context.Context, in *changeInput) (*document[sales.Subscription], error) {
	want, err := wantedSubscription(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.withSubscription(ctx, in, func(x *sale, sub *sales.Subscription) error {
		if sub.Customer != want.Customer {
			return invalid(FieldError{"body", "customer", "cannot be changed; subscribe the other customer"})
		}
		had := *sub
		if err := x.change(ctx, sub, want); err != nil {
			return err
		}
		return keepTimes(had, *sub, want)
	})
}

func (s *Service) endSubscription(ctx context.Context, in *changeInput) (*struct{}, error) {
	_, err := s.withSubscription(ctx, in, func(x *sale, sub *sales.Subscription) error {
		sub.Status, sub.EndsAt = sales.StatusEnded, &x.at
		return nil
	})
	return nil, err
}

// withSubscription changes an active subscription under its precondition.
func (s *Service) withSubscription(ctx context.Context, in *changeInput, change func(*sale, *sales.Subscription) error) (*document[sales.Subscription], error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	seen, err := s.store.get(ctx, subscriptionEntity, in.ID) // whose it is never changes
	if err != nil {
		return nil, err
	}
	shown, err := showSubscription(s, seen)
	if err != nil {
		return nil, err
	}
	var stored record
	err = s.store.sell(ctx, callOf(ctx).who.name, shown.Body.Customer, notFound(), func(x *sale) error {
		sub, version, err := x.lockSubscription(ctx, in.ID)
		if err != nil {
			return err
		}
		if p := cond.holds(version); p != nil {
			return p
		}
		if sub.Status == sales.StatusEnded || sub.EndsAt != nil && !x.at.Before(*sub.EndsAt) {
			return newProblem(http.StatusConflict, "ended", fmt.Sprintf("subscription %s has ended, which is final; subscribe anew", sub.ID))
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
	return showSubscription(s, stored)
}
