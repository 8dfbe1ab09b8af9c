//go:build integration

package controlplane_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// clock is a time that a test moves.
type clock struct{ now atomic.Int64 }

func clockAt(t testing.TB, text string) *clock {
	c := &clock{}
	c.set(t, text)
	return c
}

func (c *clock) set(t testing.TB, text string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	c.now.Store(at.UnixNano())
}

func (c *clock) time() time.Time { return time.Unix(0, c.now.Load()) }

// shop is a world with a customer, acme, and a plan, pro, on 16 July: 16 of the
// month's 31 days are left.
func shop(t *testing.T) (world, *clock) {
	t.Helper()
	c := clockAt(t, "2026-07-16T12:00:00Z")
	w := newWorldWith(t, controlplane.Deps{Now: c.time})
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"acme","name":"Acme"}`})
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: goodPlan})
	return w, c
}

func (w world) subscribe(t *testing.T, body string) (sales.Subscription, string) {
	t.Helper()
	got := w.must(t, 201, request{method: "POST", path: "/v1/subscriptions", body: body})
	s := decoded[sales.Subscription](t, got)
	if got.Header().Get("Location") != "/v1/subscriptions/"+s.ID {
		t.Fatalf("Location %q of %s", got.Header().Get("Location"), s.ID)
	}
	return s, got.Header().Get("Location")
}

func decoded[T any](t *testing.T, a *answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	return v
}

const toPro = `{"customer":"acme","plan":"pro"}`

func (w world) rules(t *testing.T) []rules.Rule {
	t.Helper()
	return decoded[api.Page[rules.Rule]](t, w.must(t, 200, request{method: "GET", path: "/v1/rules?tenant=acme"})).Items
}

func (w world) overrides(t *testing.T) []overrides.Override {
	t.Helper()
	return decoded[api.Page[overrides.Override]](t, w.must(t, 200, request{method: "GET", path: "/v1/overrides?tenant=acme"})).Items
}

// limits are the quota and what of it an override grants, 0 without.
func (w world) limits(t *testing.T) (quota, prorated int64) {
	t.Helper()
	for _, r := range w.rules(t) {
		if r.Limit.Algorithm == "quota" {
			quota = *r.Limit.Limit
		}
	}
	for _, o := range w.overrides(t) {
		prorated = *o.Limit
	}
	return quota, prorated
}

func (w world) holdLimits(t *testing.T, quota, prorated int64) {
	t.Helper()
	if q, p := w.limits(t); q != quota || p != prorated {
		t.Errorf("the quota is %d, prorated %d; want %d and %d", q, p, quota, prorated)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
	w.holdMirror(t, "overrides_v1", overrides.Topic)
}

func TestPlanVersionsStay(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	first := w.must(t, 200, request{method: "GET", path: "/v1/plans/pro"})
	if first.Header().Get("ETag") != `"1"` {
		t.Errorf("the first version is %s", first.Header().Get("ETag"))
	}
	w.put(t, 200, "/v1/plans/pro", `"1"`, planWith(`3100`, `6200`))
	w.put(t, 412, "/v1/plans/pro", `"1"`, goodPlan)
	if got := w.must(t, 200, request{method: "GET", path: "/v1/plans/pro/versions/1"}); got.Body.String() != first.Body.String() {
		t.Errorf("version 1 became %s", got.Body)
	}
	w.put(t, 200, "/v1/plans/pro", `"2"`, first.Body.String()) // what GET returns can be PUT back
	w.must(t, 404, request{method: "GET", path: "/v1/plans/pro/versions/4"})
	w.subscribe(t, toPro)
	if p := w.delete(t, 409, "/v1/plans/pro", "*").problem(t); !strings.Contains(p.Detail, "sub_") {
		t.Errorf("deleting a plan that is sold: %s", p.Detail)
	}
	if n := w.count(t, `SELECT count(*) FROM audit WHERE kind = 'plan'`); n != 3 {
		t.Errorf("%d audit rows for 3 changes of a plan", n)
	}
}

func TestSubscribingWritesRulesThatAreItsOwn(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	s, at := w.subscribe(t, toPro)
	if s.PlanVersion != 1 || s.Status != "active" || len(s.Phases) != 1 {
		t.Errorf("subscribed %+v", s)
	}
	w.holdLimits(t, 3100, 1600)
	found := w.rules(t)
	if len(found) != 2 || found[1].ID != s.ID+":calls:month" || found[1].Origin == nil || *found[1].Origin != (rules.Origin{Subscription: s.ID, Plan: "pro", PlanVersion: 1}) {
		t.Fatalf("rules %+v", found)
	}
	// They are read-only, whoever asks, and so is the prorated quota.
	for _, path := range []string{"/v1/rules/" + found[1].ID, "/v1/overrides/tenant:acme:calls:month"} {
		shown := w.must(t, 200, request{method: "GET", path: path})
		for _, p := range []api.Problem{
			w.put(t, 409, path, shown.Header().Get("ETag"), shown.Body.String()).problem(t), w.delete(t, 409, path, "*").problem(t),
		} {
			if !strings.Contains(p.Detail, s.ID) || !strings.Contains(p.Detail, "plan pro, version 1") {
				t.Errorf("%s: %s", path, p.Detail)
			}
		}
		w.must(t, 412, request{method: "PUT", path: path, body: shown.Body.String(), header: map[string]string{"If-None-Match": "*"}})
	}
	// A caller cannot give a rule of theirs an origin.
	stranger := ruleWith(`"id":"a"`, `"id":"a","origin":{"subscription":"sub_x","plan":"p","planVersion":1}`)
	w.must(t, 201, request{method: "POST", path: "/v1/rules", body: stranger})
	w.delete(t, 204, "/v1/rules/a", "*")

	if p := w.delete(t, 409, "/v1/customers/acme", "*").problem(t); !strings.Contains(p.Detail, s.ID) {
		t.Errorf("deleting a customer who is subscribed: %s", p.Detail)
	}
	w.delete(t, 412, at, `"1"`)
	w.delete(t, 204, at, "*")
	w.holdLimits(t, 0, 0)
	ended := decoded[sales.Subscription](t, w.must(t, 200, request{method: "GET", path: at}))
	if ended.Status != "ended" || ended.EndsAt == nil {
		t.Errorf("ended as %+v", ended)
	}
	w.put(t, 409, at, "*", toPro)
	w.delete(t, 409, at, "*")
	w.delete(t, 204, "/v1/customers/acme", "*")
}

func TestSubscribingIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"swiss","name":"S","currency":"CHF"}`})
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: planWith(`"pro"`, `"other"`)})
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: strings.ReplaceAll(planWith(`"pro"`, `"reports"`), `"calls"`, `"reports"`)})
	s, _ := w.subscribe(t, toPro)
	w.subscribe(t, `{"customer":"acme","plan":"reports"}`) // other metrics
	for _, c := range []struct {
		body, field, says string
		status            int
	}{
		{`{"customer":"nobody","plan":"pro"}`, "customer", "there is", 400},
		{`{"customer":"acme","plan":"none"}`, "plan", "there is", 400},
		{`{"customer":"acme","plan":"pro","planVersion":9}`, "planVersion", "newest", 400},
		{`{"customer":"swiss","plan":"pro"}`, "plan", "CHF", 400},
		{toPro, "", s.ID, 409},
		{`{"customer":"acme","plan":"other"}`, "plan", "metric calls", 409},
	} {
		before := w.count(t, `SELECT count(*) FROM audit`)
		p := w.must(t, c.status, request{method: "POST", path: "/v1/subscriptions", body: c.body}).problem(t)
		said, field := p.Detail, ""
		if len(p.Errors) > 0 {
			said, field = p.Errors[0].Message, p.Errors[0].Field
		}
		if field != c.field || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q says %q", c.body, field, said)
		}
		if n := w.count(t, `SELECT count(*) FROM audit`); n != before {
			t.Errorf("%s wrote something", c.body)
		}
	}
	if p := w.put(t, 409, "/v1/customers/acme", "*", `{"name":"Acme","currency":"CHF"}`).problem(t); p.Errors[0].Field != "currency" || !strings.Contains(p.Errors[0].Message, "EUR") {
		t.Errorf("another currency: %+v", p)
	}
	w.put(t, 200, "/v1/customers/acme", "*", `{"name":"Acme","currency":"EUR"}`)
	if got := listIDs(t, w, "/v1/subscriptions?customer=acme&plan=pro&planVersion=1&status=active"); !slices.Equal(got, []string{s.ID}) {
		t.Errorf("lists %q", got)
	}
}

// Whatever dies within the transaction, nothing of it is left: the outbox
// refuses each of its rows in turn.
func TestSubscribingIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := w.db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE refused (pattern text)`)
	exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT 1 FROM refused WHERE NEW.key LIKE pattern) THEN RAISE 'refused' USING ERRCODE = '57014'; END IF; RETURN NEW; END $$`)
	exec(`CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()`)
	state := `SELECT (SELECT count(*) FROM rules WHERE document IS NOT NULL) + (SELECT count(*) FROM overrides WHERE document IS NOT NULL) +
		(SELECT count(*) FROM subscriptions) + (SELECT count(*) FROM outbox) + (SELECT count(*) FROM audit)`
	before := w.count(t, state)
	for _, pattern := range []string{"%:calls:month", "%:calls:1s", "tenant:acme:%"} {
		exec(`TRUNCATE refused`)
		exec(`INSERT INTO refused VALUES ($1)`, pattern)
		w.must(t, 503, request{method: "POST", path: "/v1/subscriptions", body: toPro})
		if n := w.count(t, state); n != before {
			t.Errorf("refused at %s, it left %d rows", pattern, n-before)
		}
	}
	exec(`TRUNCATE refused`)
	w.subscribe(t, toPro)
	w.holdLimits(t, 3100, 1600)
}

// A change of version keeps the rules' ids, and so what counters there are.
func TestChangingTheVersion(t *testing.T) {
	t.Parallel()
	w, c := shop(t)
	_, at := w.subscribe(t, toPro)
	before := w.rules(t)
	w.put(t, 200, "/v1/plans/pro", `"1"`, planWith(`3100`, `6200`))
	w.holdLimits(t, 3100, 1600) // nobody is moved by a new version
	c.set(t, "2026-07-21T08:00:00Z")
	w.put(t, 400, at, "*", `{"customer":"globex","plan":"pro"}`)
	got := decoded[sales.Subscription](t, w.put(t, 200, at, "*", toPro))
	if got.PlanVersion != 2 || len(got.Phases) != 2 {
		t.Errorf("changed to %+v", got)
	}
	w.holdLimits(t, 6200, 5*100+11*200) // five days of the old, eleven of the new
	for i, r := range w.rules(t) {
		if r.ID != before[i].ID || r.Origin.PlanVersion != 2 {
			t.Errorf("rule %d was %s, is %s of version %d", i, before[i].ID, r.ID, r.Origin.PlanVersion)
		}
	}
	// To another plan, which counts no calls a second: that rule goes.
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: `{"id":"lite","currency":"EUR","rules":[{"metric":"calls","limit":{"algorithm":"quota","kind":"renewing","limit":10}}]}`})
	w.put(t, 200, at, "*", `{"customer":"acme","plan":"lite"}`)
	w.holdLimits(t, 10, 0)
	if n := len(w.rules(t)); n != 1 {
		t.Errorf("%d rules of a plan with one", n)
	}
}

func TestEndingWithThePeriod(t *testing.T) {
	t.Parallel()
	w, c := shop(t)
	_, at := w.subscribe(t, toPro)
	cancelled := w.put(t, 200, at, "*", `{"customer":"acme","plan":"pro","cancelAtPeriodEnd":true}`)
	if got := decoded[sales.Subscription](t, cancelled).EndsAt; got == nil || !got.Equal(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("ends at %v", got)
	}
	for _, r := range w.rules(t) {
		if r.ValidUntil == nil {
			t.Errorf("rule %s has no end: it would hold until somebody deletes it", r.ID)
		}
	}
	w.put(t, 200, at, "*", toPro) // thought better of
	for _, r := range w.rules(t) {
		if r.ValidUntil != nil {
			t.Errorf("rule %s still ends at %s", r.ID, r.ValidUntil)
		}
	}
	w.put(t, 200, at, "*", cancelled.Body.String())
	c.set(t, "2026-08-01T00:00:00Z")
	// Before anything has settled it, it is over: it takes no change and stands in nobody's way.
	w.put(t, 409, at, "*", toPro)
	again, _ := w.subscribe(t, toPro)
	w.holdLimits(t, 3100, 0)
	if got := listIDs(t, w, "/v1/subscriptions?customer=acme&status=active"); !slices.Equal(got, []string{again.ID}) {
		t.Errorf("active are %q", got)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
}

// What follows from the time alone is done by the room itself: a prorated quota
// goes with its period, a subscription that was cancelled ends.
func TestSubscriptionsSettleByThemselves(t *testing.T) {
	t.Parallel()
	w, c := shop(t)
	_, at := w.subscribe(t, toPro)
	go func() { _ = w.Run(t.Context()) }()
	w.holdLimits(t, 3100, 1600)
	c.set(t, "2026-08-01T00:00:00Z")
	servertest.Eventually(t, 10*time.Second, "the prorated quota to go", func() bool { return len(w.overrides(t)) == 0 })
	w.put(t, 200, at, "*", `{"customer":"acme","plan":"pro","cancelAtPeriodEnd":true}`)
	c.set(t, "2026-09-01T00:00:00Z")
	servertest.Eventually(t, 10*time.Second, "the rules to go", func() bool { return len(w.rules(t)) == 0 })
	if s := decoded[sales.Subscription](t, w.must(t, 200, request{method: "GET", path: at})); s.Status != "ended" {
		t.Errorf("ended as %+v", s)
	}
	if n := w.count(t, `SELECT count(*) FROM audit WHERE actor = 'controlplane'`); n != 4 {
		t.Errorf("%d audit rows, want those of an override, two rules and the subscription", n)
	}
	w.holdLimits(t, 0, 0)
}

// More than are read at once cannot be settled, all of them due before the one that
// can: it does not wait for them. One of them that can be later on is.
func TestSubscriptionsThatCannotBeSettledKeepNoOtherWaiting(t *testing.T) {
	t.Parallel()
	w, c := shop(t)
	w.subscribe(t, toPro)
	if _, err := w.db.Exec(t.Context(), `INSERT INTO subscriptions (key, version, document, due_at)
		SELECT 'lost-' || n, 1, document || jsonb_build_object('id', 'lost-' || n, 'customer', 'gone-' || n), '2026-07-17T00:00:00Z'
		FROM subscriptions, generate_series(1, 230) n`); err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.Run(t.Context()) }()
	c.set(t, "2026-08-01T00:00:00Z")
	servertest.Eventually(t, 30*time.Second, "the prorated quota to go", func() bool { return len(w.overrides(t)) == 0 })
	lost := `SELECT count(*) FROM subscriptions WHERE due_at <= '2026-08-01T00:00:00Z'`
	if n := w.count(t, lost); n != 230 {
		t.Fatalf("%d are due still, want those of customers that are gone", n)
	}
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"gone-7","name":"Back"}`})
	servertest.Eventually(t, 60*time.Second, "the one that came back to be settled", func() bool { return w.count(t, lost) == 229 })
}

// An override of people goes before what a plan works out, and is left alone.
func TestAnAgreedOverrideStays(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	agreed := `{"subject":{"kind":"tenant","value":"acme"},"metric":"calls","period":"month","limit":9000}`
	w.must(t, 201, request{method: "POST", path: "/v1/overrides", body: agreed})
	_, at := w.subscribe(t, toPro)
	w.holdLimits(t, 3100, 9000)
	w.delete(t, 204, at, "*")
	w.holdLimits(t, 0, 9000)
}

// A customer's timezone moves the periods of a plan that names none; the
// running period is finished by the old calendar.
func TestAnotherTimezone(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.put(t, 200, "/v1/plans/pro", `"1"`, planWith(`"timezone":"UTC",`, ``))
	w.subscribe(t, toPro)
	w.put(t, 200, "/v1/customers/acme", "*", `{"name":"Acme","timezone":"Asia/Tokyo"}`)
	for _, r := range w.rules(t) {
		if l := r.Limit; l.Algorithm == "quota" && (l.Timezone != "Asia/Tokyo" || len(l.Previous) != 1 || l.Previous[0].Timezone != "UTC") {
			t.Errorf("the quota counts by %+v", l)
		}
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
}
