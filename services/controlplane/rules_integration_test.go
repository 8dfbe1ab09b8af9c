//go:build integration

package controlplane_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func TestRuleLifeIsMirroredByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: goodRule})
	if created.Header().Get("Location") != "/v1/rules/a" || created.Header().Get("ETag") == "" {
		t.Fatalf("headers %v", created.Header())
	}
	w.must(t, 409, request{method: "POST", path: "/v1/rules", body: goodRule})

	got := w.must(t, 200, request{method: "GET", path: "/v1/rules/a"})
	var shown rules.Rule
	if err := json.Unmarshal(got.Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Mode != "enforce" || shown.OnStoreLoss != "open" || shown.OnMissing != "skip" || shown.Version == 0 {
		t.Fatalf("defaults are not shown: %s", got.Body)
	}
	put := w.put(t, 200, "/v1/rules/a", got.Header().Get("ETag"), got.Body.String()) // what GET returns can be PUT back
	w.put(t, 412, "/v1/rules/a", got.Header().Get("ETag"), goodRule)
	w.delete(t, 412, "/v1/rules/a", got.Header().Get("ETag"))
	w.delete(t, 204, "/v1/rules/a", put.Header().Get("ETag"))
	w.must(t, 404, request{method: "GET", path: "/v1/rules/a"})
	w.delete(t, 404, "/v1/rules/a", "*")
	w.put(t, 404, "/v1/rules/a", "*", goodRule)
	w.holdMirror(t, "rules_v1", rules.Topic)

	again := w.must(t, 201, request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-None-Match": "*"}})
	w.must(t, 412, request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-None-Match": "*"}})
	if again.Header().Get("ETag") <= put.Header().Get("ETag") {
		t.Errorf("version went from %s to %s over a deletion", put.Header().Get("ETag"), again.Header().Get("ETag"))
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
	if n := w.count(t, `SELECT count(*) FROM outbox`); n != 4 {
		t.Errorf("the outbox holds %d rows for 4 changes", n)
	}
	if n := w.count(t, `SELECT count(*) FROM audit`); n != 4 {
		t.Errorf("the audit log holds %d rows for 4 changes", n)
	}
}

func TestRefusedWritesLeaveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(t, 404, "/v1/rules/a", "*", goodRule)
	w.put(t, 404, "/v1/rules/a", `"1"`, goodRule)
	w.delete(t, 404, "/v1/rules/a", "*")
	w.must(t, 403, request{method: "POST", path: "/v1/rules", body: goodRule, token: "Bearer " + readOnlyToken})
	for _, c := range badInputs {
		c.is.do(t, w)
	}
	// A document that fits the body's bound but not Kafka's: its own 413.
	var big strings.Builder
	big.WriteString(`{"name":"big","prefix":"/b/","upstreams":[{"url":"http://a"}],"endpoints":[`)
	for i := 0; big.Len() < 1_000_000; i++ {
		fmt.Fprintf(&big, `{"pattern":"/b/%d","about":"%s"},`, i, strings.Repeat("x", 1000))
	}
	big.WriteString(`{"pattern":"/b/last"}]}`)
	tooLong := w.must(t, 413, request{method: "POST", path: "/v1/services", body: big.String()})
	if p := tooLong.problem(t); !strings.Contains(p.Detail, "as it is stored") {
		t.Errorf("says %q", p.Detail)
	}
	for _, table := range []string{"rules", "overrides", "catalog", "api_keys", "outbox", "audit"} {
		if n := w.count(t, `SELECT count(*) FROM `+table); n != 0 {
			t.Errorf("%s holds %d rows", table, n)
		}
	}
}

func TestOneOfManyWritersWins(t *testing.T) {
	t.Parallel()
	const writers = 20
	w := newWorld(t)
	etag := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: goodRule}).Header().Get("ETag")
	puts := atOnce(writers, func() int {
		return request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-Match": etag}}.do(t, w).Code
	})
	if puts[200] != 1 || puts[412] != writers-1 {
		t.Errorf("PUTs with one ETag were answered %v", puts)
	}
	posts := atOnce(writers, func() int {
		return request{method: "POST", path: "/v1/rules", body: ruleNamed("b")}.do(t, w).Code
	})
	if posts[201] != 1 || posts[409] != writers-1 {
		t.Errorf("POSTs of one id were answered %v", posts)
	}
	free := atOnce(writers, func() int {
		return request{method: "PUT", path: "/v1/rules/b", body: ruleNamed("b"), header: anyVersion}.do(t, w).Code
	})
	if free[200] != writers {
		t.Errorf("PUTs with * were answered %v", free)
	}
	w.holdMirror(t, "rules_v1", rules.Topic) // which holds that versions commit in their order, too
}

// atOnce counts the statuses of n calls that begin together.
func atOnce(n int, call func() int) map[int]int {
	var wg sync.WaitGroup
	begin, codes := make(chan struct{}), make(chan int, n)
	for range n {
		wg.Go(func() {
			<-begin
			codes <- call()
		})
	}
	close(begin)
	wg.Wait()
	close(codes)
	counts := map[int]int{}
	for code := range codes {
		counts[code]++
	}
	return counts
}

func TestIDsOfAllSorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []string{"{a}:%", "with space", "a/b", "%2F", "%25", "ä€😀", "a?b#c", "*", "a..b", `"quoted"`, "-", "+", "~a~"}
	for _, id := range ids {
		created := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: ruleNamed(id)})
		location := created.Header().Get("Location")
		if location != rulePath(id) {
			t.Errorf("%q: Location %q", id, location)
		}
		got := w.must(t, 200, request{method: "GET", path: location})
		var shown rules.Rule
		if err := json.Unmarshal(got.Body.Bytes(), &shown); err != nil || shown.ID != id {
			t.Errorf("GET %s shows %q, %v", location, shown.ID, err)
		}
		w.put(t, 200, location, got.Header().Get("ETag"), got.Body.String())
	}
	for _, id := range ids {
		w.delete(t, 204, rulePath(id), "*")
	}
	w.holdMirror(t, "rules_v1", rules.Topic)
}

func TestListPagesAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for _, id := range []string{"b", "a", "Z", "a b", "é", "gone"} {
		w.must(t, 201, request{method: "POST", path: "/v1/rules", body: ruleNamed(id)})
		want = append(want, id)
	}
	w.delete(t, 204, "/v1/rules/gone", "*")
	want = want[:5]
	slices.Sort(want) // byte order
	if got := listIDs(t, w, "/v1/rules?limit=2"); !slices.Equal(got, want) {
		t.Errorf("pages hold %q, want %q", got, want)
	}
	acme := func(id, kind, value, scope string) {
		body := strings.Replace(ruleNamed(id), `{"kind":"tenant","value":"*"}`, `{"kind":"`+kind+`","value":"`+value+`"}`, 1)
		w.must(t, 201, request{method: "POST", path: "/v1/rules", body: strings.Replace(body, `"metric":"hellos"`, `"metric":"m","scope":`+scope, 1)})
	}
	acme("t1", "tenant", "acme", `{}`)
	acme("t2", "user", "acme/u1", `{"service":"pay"}`)
	acme("t3", "application", "acmee/x", `{"service":"pay"}`)
	for query, want := range map[string][]string{
		"tenant=acme": {"t1", "t2"}, "service=pay": {"t2", "t3"}, "metric=m": {"t1", "t2", "t3"},
		"metric=m&service=pay&tenant=acme": {"t2"}, "tenant=acme_": nil, "service=%25": nil,
	} {
		if got := listIDs(t, w, "/v1/rules?limit=1&"+query); !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
}

// listIDs reads a list to its end.
func listIDs(t *testing.T, w world, path string) []string {
	t.Helper()
	var ids []string
	for next := ""; ; {
		var page struct {
			Items []struct{ ID string }
			Next  string
		}
		got := w.must(t, 200, request{method: "GET", path: path + "&cursor=" + next})
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			ids = append(ids, r.ID)
		}
		if next = page.Next; next == "" {
			return ids
		}
	}
}

func TestRuleWithoutIDGetsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: ruleWith(`"id":"a",`, ``)})
	w.must(t, 200, request{method: "GET", path: got.Header().Get("Location")})
}
