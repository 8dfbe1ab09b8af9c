//go:build integration

package controlplane_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// atOnce does requests side by side and counts their answers by status.
func (w world) atOnce(t *testing.T, all ...request) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var done sync.WaitGroup
	codes := map[int]int{}
	for _, r := range all {
		done.Go(func() {
			got := r.do(t, w)
			mu.Lock()
			defer mu.Unlock()
			codes[got.Code]++
			if got.Code >= 500 {
				t.Errorf("%s %s answers %d %s", r.method, r.path, got.Code, got.Body)
			}
		})
	}
	done.Wait()
	return codes
}

// Of subscriptions that would count one metric twice, one is made, however many
// are tried at once; and a customer or plan that is deleted meanwhile has none.
func TestSalesOfOneCustomerWaitForEachOther(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: planWith(`"pro"`, `"other"`)})
	var all []request
	for range 6 {
		for _, plan := range []string{"pro", "other"} {
			all = append(all, request{method: "POST", path: "/v1/subscriptions", body: strings.Replace(toPro, "pro", plan, 1)})
		}
	}
	if codes := w.atOnce(t, all...); codes[201] != 1 || codes[409] != 11 {
		t.Errorf("answers %v, want one 201 and the rest 409", codes)
	}
	if n := w.count(t, `SELECT count(*) FROM rules WHERE document IS NOT NULL`); n != 2 {
		t.Errorf("%d rules of one subscription", n)
	}
	sub := listIDs(t, w, "/v1/subscriptions?customer=acme")[0]
	w.delete(t, 204, "/v1/subscriptions/"+sub, "*")

	w.atOnce(t, request{method: "DELETE", path: "/v1/customers/acme", header: anyVersion}, all[0], all[1],
		request{method: "DELETE", path: "/v1/plans/pro", header: anyVersion}, all[2],
		request{method: "PUT", path: "/v1/plans/other", header: anyVersion, body: planWith(`"pro"`, `"other"`)})
	if n := w.count(t, `SELECT count(*) FROM subscriptions s WHERE s.status = 'active' AND (
		NOT EXISTS (SELECT 1 FROM customers c WHERE c.key = s.customer AND c.document IS NOT NULL) OR
		NOT EXISTS (SELECT 1 FROM plans p WHERE p.key = s.plan AND p.document IS NOT NULL))`); n != 0 {
		t.Errorf("%d subscriptions of or to what is gone", n)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
	w.holdMirror(t, "overrides_v1", overrides.Topic)
}
