//go:build integration

package controlplane_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/controlplane"
)

const monthly = `{"id":"q","subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":30,"period":"month"}}`

// A change of calendar waits for the end of the running period; the rule says
// so by itself, whatever a caller sends.
func TestChangeOfCalendarWaitsForThePeriodsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, err := pgxpool.New(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	now := time.Date(2026, 7, 10, 12, 0, 0, 0, time.UTC)
	w.Service, err = controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: noUsage{}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	with := func(fields string) string { return strings.Replace(monthly, `"limit":30`, `"limit":30,`+fields, 1) }
	put := func(body string) *rules.Limit {
		t.Helper()
		var r rules.Rule
		got := w.put(t, 200, "/v1/rules/q", "*", body)
		if err := json.Unmarshal(got.Body.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r.Limit
	}
	forged := with(`"previous":[{"timezone":"UTC","until":"2030-01-01T00:00:00Z"}],"since":"2020-01-01T00:00:00Z"`)
	if got := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: forged}).Body.String(); strings.Contains(got, "previous") || strings.Contains(got, "since") {
		t.Fatalf("takes what is not the caller's to write: %s", got)
	}
	august := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	l := put(with(`"anchorDay":15`))
	if len(l.Previous) != 1 || l.Previous[0].AnchorDay != 1 || !l.Previous[0].Until.Equal(august) {
		t.Fatalf("previous is %+v", l.Previous)
	}
	if l := put(with(`"anchorDay":15,"rollover":5`)); len(l.Previous) != 1 || l.Since == nil || !l.Since.Equal(now) {
		t.Fatalf("a change of something else: %+v", l)
	}
	now = now.Add(time.Hour)
	if l := put(with(`"rollover":6`)); len(l.Previous) != 0 || !l.Since.Equal(now.Add(-time.Hour)) {
		t.Fatalf("a change taken back before it came into force: %+v", l)
	}
	put(with(`"timezone":"Europe/Paris"`))
	now = august.Add(time.Hour) // the first period of the new calendar began at 22:00 UTC, and is short
	if l := put(strings.Replace(with(`"timezone":"Europe/Paris"`), ":30", ":40", 1)); len(l.Previous) != 1 || !l.Previous[0].Until.Equal(august) {
		t.Fatalf("in the short period: %+v", l.Previous)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
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
