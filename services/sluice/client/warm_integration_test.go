//go:build integration

package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// The hottest paths come page by page from a real control plane and usage store.
func TestWarmAsksForTheHottestPaths(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var mu sync.Mutex
	var asked []string
	gw := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.RequestURI)
		w.Header().Set("Cache-Status", "sluice; hit; ttl=9")
	}))
	t.Cleanup(gw.Close)
	var events []usage.Event
	for i := range 2*rest.PageSize + 10 {
		path := "/shop/hottest"
		switch {
		case i%3 == 0:
			path = "/shop/item/{id}"
		case i%5 == 0:
			path = "/shop/hot"
		}
		events = append(events, usage.Event{
			ID: fmt.Sprintf("w%04d", i), TS: time.Now().UTC().Add(-time.Duration(i) * time.Millisecond), TenantID: "acme", Service: "shop",
			Endpoint: path, Method: http.MethodGet, Decision: usage.DecisionAllow, StatusCode: 200, Gateway: "gw",
		})
	}
	old := events[0]
	old.ID, old.TS, old.Endpoint = "old", time.Now().UTC().Add(-3*time.Hour), "/shop/yesterday"
	if _, err := s.usage.Put(t.Context(), append(events, old)); err != nil {
		t.Fatal(err)
	}
	warm := []string{"cache", "warm", "--gateway", gw.URL, "--rate", "1000", "--top"}
	out, progress, err := s.run(t, "", append(warm, "2")...)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"/shop/hot", "/shop/hottest"}) {
		t.Errorf("asked for %q", asked)
	}
	holds(t, out, "2 of 2 paths: 2 hits, 0 misses")
	holds(t, progress, "left out, as usage names their pattern only (warm them from a list): /shop/item/{id}\n")
	if _, progress, err = s.run(t, "", append(warm, "1", "--events", "600")...); err != nil {
		t.Fatal(err)
	}
	holds(t, progress, "counted the newest 600 events only")
	s.refused(t, "no usage event of that time names a path", "", append(warm, "1", "--service", "bank")...)
}
