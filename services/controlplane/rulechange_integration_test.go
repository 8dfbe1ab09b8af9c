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
