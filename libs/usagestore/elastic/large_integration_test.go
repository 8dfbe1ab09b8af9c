//go:build integration

package elastic

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/usagestore/storetest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// A proxy before the server often takes less than the server does.
func TestRequestsTooLargeAreHalvedAndOnlyTheTooLargeDocumentIsRefused(t *testing.T) {
	server := servertest.Search(t)
	upstream, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	narrow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 2000 && strings.HasSuffix(r.URL.Path, "_bulk") {
			refused.Add(1)
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(narrow.Close)
	s, err := New(Config{URL: narrow.URL, Flavor: server.Flavor, IndexPrefix: server.IndexPrefix + "narrow"})
	if err != nil {
		t.Fatal(err)
	}
	var events []usage.Event
	for n := range 100 {
		events = append(events, storetest.Event("acme", n))
	}
	events[42].UserID = incompressible(30_000)
	results, err := s.Put(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range results {
		if large := n == 42; large != (r.Err != nil) || large && !r.Err.Permanent {
			t.Errorf("event %d: %v", n, r.Err)
		}
	}
	if refused.Load() == 0 {
		t.Fatal("no request was too large; the test shows nothing")
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := s.Search(t.Context(), usagestore.Query{Limit: 1000})
	if err != nil || len(page.Events) != 99 {
		t.Fatalf("%d of 99 documents, %v", len(page.Events), err)
	}
}

// incompressible text, since request bodies are compressed.
func incompressible(n int) string {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = 'a' + byte(x>>24)%26
	}
	return string(b)
}

func TestPutsOverTheLimitOfARequestAreSplit(t *testing.T) {
	server := servertest.Search(t)
	s, err := New(Config{URL: server.URL, Flavor: server.Flavor, IndexPrefix: server.IndexPrefix + "wide"})
	if err != nil {
		t.Fatal(err)
	}
	var events []usage.Event
	for n := range 300 {
		e := storetest.Event("acme", n)
		e.UserID = incompressible(20_000)
		events = append(events, e)
	}
	results, err := s.Put(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range results {
		if r.Err != nil {
			t.Fatalf("event %d: %v", n, r.Err)
		}
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Search(t.Context(), usagestore.Query{Limit: 1000}); err != nil || len(page.Events) != 300 {
		t.Fatalf("%d of 300 documents, %v", len(page.Events), err)
	}
}

func TestAServerThatIsAwayIsAnErrorForAllEvents(t *testing.T) {
	s, err := New(Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if results, err := s.Put(t.Context(), []usage.Event{storetest.Event("acme", 1)}); err == nil || results != nil {
		t.Fatalf("put = %v, %v", results, err)
	}
	if s.Ready(t.Context()) == nil {
		t.Fatal("ready without a server")
	}
}
