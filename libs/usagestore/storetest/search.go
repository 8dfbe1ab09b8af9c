package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func search(t *testing.T, h Harness) {
	s := h.New(t)
	var all []usage.Event
	for n := range 25 {
		e := Event([]string{"acme", "globex"}[n%2], n)
		if n%5 == 0 {
			e.Decision, e.StatusCode = usage.DecisionDeny, 429
		}
		e.TS = Noon.Add(time.Duration(n/3) * time.Minute) // three at one instant
		all = append(all, e)
	}
	h.putAll(t, s, all...)
	slices.SortFunc(all, func(a, b usage.Event) int {
		if c := b.TS.Compare(a.TS); c != 0 {
			return c
		}
		return slices.Compare([]string{b.ID}, []string{a.ID})
	})
	for name, c := range map[string]struct {
		q    usagestore.Query
		keep func(usage.Event) bool
	}{
		"everything": {usagestore.Query{}, func(usage.Event) bool { return true }},
		"tenant":     {usagestore.Query{TenantID: "acme"}, func(e usage.Event) bool { return e.TenantID == "acme" }},
		"decision": {usagestore.Query{Decision: usage.DecisionDeny, TenantID: "globex"},
			func(e usage.Event) bool { return e.Decision == usage.DecisionDeny && e.TenantID == "globex" }},
		"span": {usagestore.Query{From: Noon.Add(2 * time.Minute), To: Noon.Add(4 * time.Minute)},
			func(e usage.Event) bool {
				return !e.TS.Before(Noon.Add(2*time.Minute)) && e.TS.Before(Noon.Add(4*time.Minute))
			}},
		"nobody": {usagestore.Query{TenantID: "acm"}, func(usage.Event) bool { return false }},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(e usage.Event) bool { return !c.keep(e) })
		for _, limit := range []int{0, 1, 4, len(want), 5000} {
			c.q.Limit = limit
			if diff := cmp.Diff(ids(want), ids(pages(t, s, c.q))); diff != "" {
				t.Errorf("%s, limit %d (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}

// pages follows the cursors to the end.
func pages(t *testing.T, s usagestore.Store, q usagestore.Query) (all []usage.Event) {
	t.Helper()
	for range 100 {
		page := find(t, s, q)
		if len(page.Events) > q.PageLimit() {
			t.Fatalf("page of %d events, limit %d", len(page.Events), q.PageLimit())
		}
		all = append(all, page.Events...)
		if page.Next == "" {
			return all
		}
		q.Cursor = page.Next
	}
	t.Fatal("cursors do not end")
	return nil
}
