//go:build integration

package controlplane_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane"
)

// sold is a till on a day of its own, where acme holds a subscription to pro, and
// each write of what is sold that can be asked of it once.
func sold(t *testing.T, now time.Time) (*till, map[string]request) {
	t.Helper()
	s := newTillAt(t, func() time.Time { return now })
	s.must(t, 201, request{method: "POST", path: "/v1/plans", body: goodPlan})
	_, subscription := s.subscribe(t, toPro)
	s.put(t, 200, "/v1/plans/pro", "*", planWith("3100", "6200"))
	s.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"beta","name":"Beta"}`})
	s.must(t, 201, request{method: "POST", path: "/v1/plans", body: strings.Replace(goodPlan, `"pro"`, `"idle"`, 1)})
	override := `{"subject":{"kind":"tenant","value":"acme"},"metric":"reports","limit":5}`
	return s, map[string]request{
		"top-up":               topUpWith("k", `{"amount":5}`),
		"top-up with an end":   topUpWith("e", `{"amount":5,"expiresAt":"2027-01-01T00:00:00Z"}`),
		"new customer":         {method: "POST", path: "/v1/customers", body: `{"id":"new","name":"New"}`},
		"changed customer":     {method: "PUT", path: "/v1/customers/acme", body: strings.Replace(goodCustomer, "Europe/Istanbul", "UTC", 1), header: anyVersion},
		"deleted customer":     {method: "DELETE", path: "/v1/customers/beta", header: anyVersion},
		"portal link":          {method: "POST", path: "/v1/customers/acme/portal-links", body: `{}`},
		"new plan":             {method: "POST", path: "/v1/plans", body: strings.Replace(goodPlan, `"pro"`, `"new"`, 1)},
		"changed plan":         {method: "PUT", path: "/v1/plans/pro", body: goodPlan, header: anyVersion},
		"deleted plan":         {method: "DELETE", path: "/v1/plans/idle", header: anyVersion},
		"move":                 {method: "POST", path: "/v1/plans/pro/moves", body: `{"from":1,"to":2,"all":true}`},
		"new subscription":     {method: "POST", path: "/v1/subscriptions", body: `{"customer":"beta","plan":"pro"}`},
		"changed subscription": {method: "PUT", path: subscription, body: `{"customer":"acme","plan":"pro","cancelAtPeriodEnd":true}`, header: anyVersion},
		"ended subscription":   {method: "DELETE", path: subscription, header: anyVersion},
		"new override":         {method: "POST", path: "/v1/overrides", body: override},
		"put override":         {method: "PUT", path: "/v1/overrides/tenant:acme:reports", body: override, header: map[string]string{"If-None-Match": "*"}},
		"deleted override":     {method: "DELETE", path: "/v1/overrides/tenant:acme:reports", header: anyVersion},
	}
}

// by is the request as a caller sends it whose clock says so.
func (r request) by(clock string) request {
	header := maps.Clone(r.header)
	if header == nil {
		header = map[string]string{}
	}
	header["Date"] = clock
	r.header = header
	return r
}

// A caller whose clock is a year off buys nothing, ends nothing and changes
// nothing: it is told by name, with both times and how far they may be apart,
// and no table, outbox or Redis key has more. Neither has it used up its key.
func TestACallerWhoseClockIsOffWritesNoMoney(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 16, 12, 0, 0, 0, time.UTC)
	s, writes := sold(t, now)
	before := s.rows(t)
	for what, r := range writes {
		for clock, says := range map[string]string{
			now.AddDate(-1, 0, 0).Format(http.TimeFormat):              "within 15m0s of the control plane's clock, which says 2026-07-16T12:00:00Z; it says 2025-07-16T12:00:00Z",
			now.AddDate(1, 0, 0).Format(http.TimeFormat):               "it says 2027-07-16T12:00:00Z",
			now.Add(-15*time.Minute - time.Second).Format(time.RFC850): "it says 2026-07-16T11:44:59Z",
			now.Add(15*time.Minute + time.Second).Format(time.ANSIC):   "it says 2026-07-16T12:15:01Z",
			"Thu, 16 Jul 2026 12:15:60 GMT":                            "it says 2026-07-16T12:16:00Z",
			"Thu, 16 Jul 2026 12:00:61 GMT":                            "must be a date such as Thu, 16 Jul 2026 12:00:00 GMT",
			"2026-07-16T12:00:00Z":                                     "must be a date such as Thu, 16 Jul 2026 12:00:00 GMT",
			"yesterday":                                                "must be a date such as",
		} {
			got := r.by(clock).do(t, s)
			p := got.problem(t)
			if got.Code != 400 || len(p.Errors) != 1 || p.Errors[0].Location != "header" || p.Errors[0].Field != "Date" || !strings.Contains(p.Errors[0].Message, says) {
				t.Errorf("%s by %s: %d %+v", what, clock, got.Code, p)
			}
		}
	}
	if after := s.rows(t); !maps.Equal(before, after) {
		t.Errorf("rows were %v, are %v", before, after)
	}
	// Right to the last second, in each form of RFC 9110, or without a clock.
	for clock, key := range map[string]string{
		now.Add(-15 * time.Minute).Format(http.TimeFormat): "k", now.Add(15 * time.Minute).Format(time.RFC850): "e", now.Format(time.ANSIC): "f", "": "g",
	} {
		s.must(t, 201, topUpWith(key, `{"amount":5}`).by(clock))
	}
	// A leap second is as right as any.
	for key, clock := range map[string]string{"h": "Thu, 16 Jul 2026 12:14:60 GMT", "i": "Thursday, 16-Jul-26 11:59:60 GMT", "j": "Thu Jul 16 11:44:60 2026"} {
		s.must(t, 201, topUpWith(key, `{"amount":5}`).by(clock))
	}
	s.holds(t, 7, 35)
}

// A top-up that was granted is answered so again, by whatever clock it is sent and
// wherever the answer lies: told that it was refused, its caller would buy twice.
func TestARepetitionIsAnsweredByAnyClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 16, 12, 0, 0, 0, time.UTC)
	s := newTillAt(t, func() time.Time { return now })
	sent := topUpWith("order-1", `{"amount":5,"expiresIn":"10m"}`).by(now.Format(http.TimeFormat))
	first := s.must(t, 201, sent)
	now = now.Add(20 * time.Minute) // in a queue, with its Date
	for _, where := range []string{"redis", "postgres"} {
		for _, r := range []request{sent, sent.by("Thu, 01 Jan 1970 00:00:00 GMT"), sent.by("yesterday")} {
			if again := s.must(t, 201, r); again.Body.String() != first.Body.String() || again.Header().Get("Location") != first.Header().Get("Location") {
				t.Errorf("from %s: %s, was %s", where, again.Body, first.Body)
			}
		}
		s.must(t, 422, topUpWith("order-1", `{"amount":6,"expiresIn":"10m"}`).by(sent.header["Date"]))
		s.forget(t)
	}
	// The same request under a new key is no repetition.
	anew := topUpWith("order-2", `{"amount":5,"expiresIn":"10m"}`).by(sent.header["Date"])
	if p := s.must(t, 400, anew).problem(t); p.Errors[0].Field != "Date" {
		t.Errorf("%+v", p)
	}
	s.holds(t, 1, 5)
}

// What stops an attack does not wait for a clock, nor does what only reads.
func TestRulesAndKeysAreWrittenByAnyClock(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	const long = "Thu, 01 Jan 1970 00:00:00 GMT"
	s.must(t, 201, request{method: "POST", path: "/v1/rules", body: goodRule}.by(long))
	s.must(t, 201, request{method: "POST", path: "/v1/keys", body: `{"tenantId":"acme"}`}.by(long))
	s.must(t, 200, request{method: "GET", path: "/v1/customers/acme"}.by(long))
}

// An end that is past can stay in what is put back, and one may be now by a
// clock some minutes slow; a new one that is long past is refused.
func TestEndsThatArePastCanBePutBack(t *testing.T) {
	t.Parallel()
	now := clockAt(t, "2026-07-16T12:00:00Z")
	w := newWorldWith(t, controlplane.Deps{Now: now.time})
	override := `{"subject":{"kind":"tenant","value":"acme"},"metric":"calls","limit":5,"validUntil":"2026-07-16T12:00:00Z"}`
	rule := strings.Replace(prepaidRule, `"id"`, `"validUntil":"2026-07-16T11:50:00Z","id"`, 1)
	ruleAt := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: rule}).Header().Get("Location")
	overrideAt := w.must(t, 201, request{method: "POST", path: "/v1/overrides", body: override}).Header().Get("Location")
	now.set(t, "2027-07-16T12:00:00Z")
	for _, path := range []string{ruleAt, overrideAt} {
		stored := w.must(t, 200, request{method: "GET", path: path})
		w.put(t, 200, path, "*", stored.Body.String())
		earlier := strings.Replace(stored.Body.String(), `"validUntil":"2026-07-16T1`, `"validUntil":"2025-07-16T1`, 1)
		if p := w.put(t, 400, path, "*", earlier).problem(t); p.Errors[0].Field != "validUntil" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// A grant may be given a life in place of an end: then no clock but ours has a
// say, and a repetition is still one.
func TestAGrantsLifeIsCountedHere(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 16, 12, 0, 0, 0, time.UTC)
	s := newTillAt(t, func() time.Time { return now })
	made := decoded[controlplane.TopUp](t, s.topUp(t, 201, "k", `{"amount":5,"expiresIn":"720h"}`))
	if made.ExpiresAt == nil || !made.ExpiresAt.Equal(now.Add(720*time.Hour)) {
		t.Fatalf("made %+v", made)
	}
	now = now.Add(time.Minute)
	s.forget(t)
	if again := decoded[controlplane.TopUp](t, s.topUp(t, 201, "k", `{"amount":5,"expiresIn":"720h"}`)); again.ID != made.ID {
		t.Errorf("a repetition made %+v, after %+v", again, made)
	}
	s.topUp(t, 422, "k", `{"amount":5,"expiresIn":"721h"}`)
}
