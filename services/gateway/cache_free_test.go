package gateway

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const freeRule = `{"id":"free","subject":{"kind":"service","value":"demo"},"metric":"m","countCached":false,
	"limit":{"algorithm":"quota","kind":"renewing","period":"month","limit":3},"onStoreLoss":"closed"}`

// A rule with countCached false charges what the service is asked for, and
// nothing else; one without charges all.
func TestHitsAreFreeWhereTheRuleSaysSo(t *testing.T) {
	t.Parallel()
	s := newCacheStand(t, catalog.Cache{StaleWhileRevalidate: "10s"}, nil)
	s.putRule(freeRule)
	s.putRule(`{"id":"all","subject":{"kind":"service","value":"demo"},"metric":"n",
		"limit":{"algorithm":"quota","kind":"renewing","period":"month","limit":1000}}`)
	consumed := func(e usage.Event, metric string) int64 {
		for _, c := range e.Charges {
			if c.Metric == metric {
				return c.Consumed
			}
		}
		return 0
	}
	for i, c := range []struct {
		path    string
		wait    time.Duration
		free, n int64 // the counters after it; 0 is not charged
		cached  string
		status  int
	}{
		{"/demo/a", 0, 1, 1, "", 200},
		{"/demo/a", 0, 0, 2, usage.CachedHit, 200},
		{"/demo/a", 65 * time.Second, 0, 3, usage.CachedStale, 200},
		{"/demo/b", 0, 2, 4, "", 200},
		{"/demo/c", 0, 3, 5, "", 200},
		{"/demo/d", 0, 0, 0, "", 429}, // the quota is used up
		{"/demo/c", 0, 0, 6, usage.CachedHit, 200},
		{"/demo/c", 90 * time.Second, 0, 0, "", 429},
	} {
		s.clock.advance(c.wait)
		a := s.get(c.path)
		e := s.event()
		if a.StatusCode != c.status || e.Cached != c.cached || c.status == 200 && (consumed(e, "m") != c.free || consumed(e, "n") != c.n) {
			t.Errorf("call %d: %d, event %+v", i, a.StatusCode, e)
		}
	}
}

// A request that wants no stored answer is charged, whatever is stored.
func TestNoHitNoGift(t *testing.T) {
	t.Parallel()
	for _, header := range [][]string{cc("no-cache"), cc("no-store"), cc("max-age=0"), {"If-Match", `"a"`}} {
		s := newCacheStand(t, catalog.Cache{}, nil)
		s.putRule(freeRule)
		s.get("/demo/a")
		s.clock.advance(time.Second)
		s.events()
		s.get("/demo/a", header...)
		if e := s.event(); len(e.Charges) != 1 || e.Charges[0].Consumed != 2 || e.Cached != "" {
			t.Errorf("%v: %+v", header, e)
		}
	}
}

// What a rule denies without its counter it denies of hits, too.
func TestHitsDoNotOpenClosedDoors(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(rule map[string]any){
		"identity": func(r map[string]any) {
			r["subject"], r["onMissing"] = map[string]any{"kind": "tenant", "value": "*"}, "deny"
		},
		"entitled to nothing": func(r map[string]any) { r["limit"].(map[string]any)["limit"] = 0 },
	} {
		s := newCacheStand(t, catalog.Cache{}, nil)
		s.get("/demo/a")
		var rule map[string]any
		if err := json.Unmarshal([]byte(freeRule), &rule); err != nil {
			t.Fatal(err)
		}
		change(rule)
		text, _ := json.Marshal(rule)
		s.putRule(string(text))
		if a := s.get("/demo/a"); a.StatusCode != 403 {
			t.Errorf("%s: answered %d", name, a.StatusCode)
		}
	}
}
