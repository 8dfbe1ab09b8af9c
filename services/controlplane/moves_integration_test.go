//go:build integration

package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/services/controlplane/internal/sales"

	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// tenants subscribes n customers, c000 and so on, to version 1 of pro, and makes
// a version 2 of twice the calls.
func (w world) tenants(t *testing.T, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		id := fmt.Sprintf("c%03d", i)
		w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"` + id + `","name":"C"}`})
		w.subscribe(t, `{"customer":"`+id+`","plan":"pro","planVersion":1}`)
		ids = append(ids, id)
	}
	w.put(t, 200, "/v1/plans/pro", "*", planWith(`3100`, `6200`))
	return ids
}

func (w world) move(t *testing.T, body string) sales.Moved {
	t.Helper()
	return decoded[sales.Moved](t, w.must(t, 200, request{method: "POST", path: "/v1/plans/pro/moves", body: body}))
}

func (w world) onVersion(t *testing.T, version int) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM subscriptions WHERE plan_version = $1`, version)
}

const everything = `SELECT coalesce(sum(hashtext(x::text)), 0) FROM (
	SELECT r::text FROM rules r UNION ALL SELECT o::text FROM overrides o UNION ALL SELECT s::text FROM subscriptions s
	UNION ALL SELECT a::text FROM audit a UNION ALL SELECT b::text FROM outbox b) x`

func TestPreviewSaysAndWritesNothing(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.tenants(t, 3)
	before := w.count(t, everything)
	got := w.move(t, `{"from":1,"to":2,"all":true,"preview":true}`)
	if w.count(t, everything) != before {
		t.Error("a preview wrote something")
	}
	if !got.Preview || len(got.Customers) != 3 || got.Remaining != 3 || got.Next != "" {
		t.Fatalf("previews %+v", got)
	}
	one := got.Customers[0]
	i := slices.IndexFunc(one.Rules, func(c sales.RuleChange) bool { return strings.HasSuffix(c.ID, ":calls:month") })
	if i < 0 || one.Customer != "c000" || *one.Rules[i].Before.Limit.Limit != 3100 || *one.Rules[i].After.Limit.Limit != 6200 ||
		len(one.Overrides) != 1 || *one.Overrides[0].Before.Limit != 1600 || *one.Overrides[0].After.Limit != 3200 {
		t.Errorf("previews %+v", one)
	}
}

func TestMovesAreResumedAndRepeated(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.tenants(t, 45) // of 26 rows at most each: three transactions
	// Somebody counts calls by another plan since: refused, and no other is held up.
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: strings.ReplaceAll(planWith(`"pro"`, `"reports"`), `"calls"`, `"reports"`)})
	w.subscribe(t, `{"customer":"c007","plan":"reports"}`)
	w.put(t, 200, "/v1/plans/pro", "*", planWith(`"rules":[`, `"rules":[{"metric":"reports","limit":{"algorithm":"gcra","limit":1,"window":"1s"}},`)) // version 3

	named := w.move(t, `{"from":1,"to":3,"customers":["c001","c007","nobody","acme"]}`)
	if len(named.Customers) != 4 || named.Remaining != 1 || w.onVersion(t, 3) != 1 {
		t.Fatalf("moves %+v", named)
	}
	for _, c := range named.Customers {
		if refused := c.Refused != ""; refused != (c.Customer != "c001") {
			t.Errorf("%s: refused %q", c.Customer, c.Refused)
		}
	}
	all := `{"from":1,"to":3,"all":true}`
	if got := w.move(t, all); len(got.Customers) != 44 || got.Remaining != 1 || got.Next != "" || w.onVersion(t, 3) != 44 {
		t.Fatalf("moves %d, %d remain, next %q; %d moved", len(got.Customers), got.Remaining, got.Next, w.onVersion(t, 3))
	}
	before := w.count(t, everything)
	again := w.move(t, all)
	if len(again.Customers) != 1 || again.Customers[0].Customer != "c007" || !strings.Contains(again.Customers[0].Refused, "reports") || w.count(t, everything) != before {
		t.Errorf("moving again: %+v", again)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
	w.holdMirror(t, "overrides_v1", overrides.Topic)
	w.must(t, 400, request{method: "POST", path: "/v1/plans/pro/moves", body: `{"from":1,"to":9,"all":true}`})
	w.must(t, 404, request{method: "POST", path: "/v1/plans/none/moves", body: all})
	if n := w.count(t, `SELECT max(n) FROM (SELECT count(*) n FROM (SELECT xmin FROM rules UNION ALL SELECT xmin FROM overrides
		UNION ALL SELECT xmin FROM subscriptions UNION ALL SELECT xmin FROM audit UNION ALL SELECT xmin FROM outbox) x GROUP BY xmin::text) y`); n > 500 {
		t.Errorf("a transaction wrote %d rows", n)
	}
}

// Two who move the same customers, and one who ends a subscription meanwhile:
// nobody is moved twice, and none is brought back.
func TestMovesBesideEachOther(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.tenants(t, 30)
	ended := listIDs(t, w, "/v1/subscriptions?customer=c029")[0]
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			got := request{method: "POST", path: "/v1/plans/pro/moves", body: `{"from":1,"to":2,"all":true}`}.do(t, w)
			if got.Code != 200 {
				t.Errorf("answers %d %s", got.Code, got.Body)
			}
		})
	}
	all.Go(func() {
		got := request{method: "DELETE", path: "/v1/subscriptions/" + ended, header: anyVersion}.do(t, w)
		if got.Code != 204 {
			t.Errorf("ending answers %d %s", got.Code, got.Body)
		}
	})
	all.Wait()
	if n := w.count(t, `SELECT count(*) FROM subscriptions WHERE status = 'active' AND plan_version = 2 AND jsonb_array_length(document->'phases') = 2`); n != 29 {
		t.Errorf("%d of 29 were moved once", n)
	}
	if n := w.count(t, `SELECT count(*) FROM rules WHERE starts_with(key, $1) AND document IS NOT NULL`, ended); n != 0 {
		t.Errorf("%d rules of the subscription that ended", n)
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
}
