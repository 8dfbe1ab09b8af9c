//go:build integration

package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// warm runs sluice cache warm against the gateway.
func (s *stack) warm(g *gate, list string, args ...string) (out string, err error) {
	cmd := exec.CommandContext(s.t.Context(), binary, append([]string{"cache", "warm"}, args...)...)
	cmd.Env = append(os.Environ(), "SLUICE_GATEWAY=http://"+g.addr, "SLUICE_URL=http://"+s.control, "SLUICE_TOKEN="+adminToken)
	cmd.Stdin = strings.NewReader(list)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// What was warmed is there when clients come, and what clients ask for most is
// what --top warms.
func TestWarmedAnswersAreServedFromTheStore(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.process("rest", "controlplane,relay,indexer,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{
		Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: s.upstream.URL}},
		Cache: &catalog.Cache{TTL: "10m", Shared: true},
	}, http.StatusCreated)
	g := s.gateway("gw")
	g.start()
	g.awaitReady()
	s.awaitEqual(g)

	// Nothing is stored before the table of purges is known.
	var out string
	servertest.Eventually(t, 30*time.Second, "the gateway to store answers", func() bool {
		text, err := s.warm(g, "/svc/first\n", "-f", "-")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return strings.Contains(text, "1 misses (now stored)")
	})
	before := s.served.Load()
	out, err := s.warm(g, "/svc/a\n/svc/b?x=1\n", "-f", "-", "--rate", "100")
	if err != nil || !strings.Contains(out, "2 of 2 paths: 0 hits, 2 misses (now stored), 0 not stored, 0 errors") {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 3 {
		for _, path := range []string{"/svc/a", "/svc/b?x=1"} {
			if got := g.hit(path, as("acme")); got.code != http.StatusOK || !strings.HasPrefix(got.header.Get("Cache-Status"), "sluice; hit") {
				t.Errorf("%s: %d %v", path, got.code, got.header)
			}
		}
	}
	if n := s.served.Load() - before; n != 2 {
		t.Errorf("the service saw %d requests, want the 2 of warming", n)
	}
	// Events name no query: /svc/b without one is another answer, which must be loaded once.
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("warm said last: %v\n%s", err, out)
		}
	})
	servertest.Eventually(t, 30*time.Second, "usage to name the three paths", func() bool {
		out, err = s.warm(g, "", "--top", "10", "--since", "1h", "--service", "svc")
		return err == nil && strings.Contains(out, "3 of 3 paths: 3 hits")
	})
	out, err = s.warm(g, "/nowhere\n", "-f", "-", "--max-errors", "0")
	if err == nil || !strings.Contains(out, "404 Not Found: 1, such as /nowhere") || !strings.Contains(out, "more than --max-errors 0") {
		t.Errorf("a path that fails: %v\n%s", err, out)
	}
}
