//go:build integration

package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/purges"
)

// Gateways share stored answers through Redis. A purge from Kafka ends them at
// each, with the service down; one that was away, with Redis as it was, reads it
// before it serves anything stored; and one restarted without the topic serves
// nothing stored at all.
func TestPurgesReachEveryGateway(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	var asked atomic.Int64
	var down atomic.Bool
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "max-age=3600, stale-if-error=3600")
		w.Header().Set("Cache-Tag", "all")
		_, _ = fmt.Fprint(w, n)
	}))
	t.Cleanup(origin.Close)
	d.put(catalog.Topic, "demo", catalog.Service{
		Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: origin.URL}}, Cache: &catalog.Cache{TagsHeader: "Cache-Tag"},
	})
	get := func(r *running) answer {
		t.Helper()
		return do(t, http.MethodGet, r.base+"/demo/a", "Host", fleetHost)
	}
	a, b := d.runReady("a", addr, prefix, nil), d.runReady("b", addr, prefix, nil)
	// The purges are not mirrored yet: they may hold anything.
	if first, second := get(a), get(a); first.body == second.body {
		t.Fatal("an answer was stored before the purges were read")
	}
	d.mirror(purges.Topic)
	var stored string
	servertest.Eventually(t, patience, "an answer to be stored", func() bool {
		stored = get(a).body
		return stored == get(a).body
	})
	servertest.Eventually(t, patience, "the other gateway to serve it", func() bool { return get(b).body == stored })
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}

	down.Store(true)
	p := purges.Purge{Service: "demo", Tag: "all"}
	p.ID = p.Target()
	d.record(purges.Topic, p.ID, mustJSON(t, p))
	servertest.Eventually(t, patience, "the purge to be obeyed", func() bool { return get(a).StatusCode >= 500 })
	d.mirror(purges.Topic)
	back := d.runReady("b", addr, prefix, nil)
	for range 20 {
		for _, r := range []*running{a, back} {
			if got := get(r); got.StatusCode == 200 {
				t.Fatalf("a purged answer was served: %q %v", got.body, got.Header)
			}
		}
	}
	servertest.Eventually(t, patience, "the table of purges", func() bool { return back.tables.purges.Ready() == nil })
	if got := get(back); got.StatusCode == 200 {
		t.Errorf("served %q", got.body)
	}
	down.Store(false)
	servertest.Eventually(t, patience, "the service's new answer at both", func() bool {
		x, y := get(a), get(back)
		return x.StatusCode == 200 && x.body == y.body && x.body != stored
	})
}
