//go:build cachesuite

package gateway

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// TestPublicCacheSuite runs the public suite for HTTP caches (cache-tests.fyi,
// package http-cache-tests) against the gate:
//
//	npm install --prefix DIR http-cache-tests
//	CACHE_TESTS=DIR/node_modules/http-cache-tests go test -tags cachesuite ./gateway -run PublicCacheSuite -v
//
// It needs node, and so stands outside of make test.
func TestPublicCacheSuite(t *testing.T) {
	dir := os.Getenv("CACHE_TESTS")
	if dir == "" {
		t.Fatal("CACHE_TESTS must be the folder of the package http-cache-tests")
	}
	free, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free)
	origin := exec.CommandContext(t.Context(), "node", "--no-warnings", "server/server.mjs")
	origin.Dir = dir
	origin.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port="+port, "npm_config_pidfile="+t.TempDir()+"/pid")
	if err := origin.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = origin.Process.Kill(); _ = origin.Wait() })
	servertest.Eventually(t, 20*time.Second, "the suite's server to listen", func() bool {
		c, err := net.Dial("tcp", "localhost:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	s := newStand(t, standOptions{
		now: time.Now,
		catalog: []catalog.Service{{
			Name: "suite", Prefix: "/", Upstreams: []catalog.Upstream{{URL: "http://localhost:" + port}},
			Cache: &catalog.Cache{StaleIfError: "1m"},
		}},
	})
	cli := exec.CommandContext(t.Context(), "node", "--no-warnings", "cli.mjs")
	cli.Dir = dir
	cli.Env = append(os.Environ(), "npm_config_base="+s.front.URL, "npm_package_config_id="+os.Getenv("CACHE_TEST_ID"))
	out, err := cli.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if os.Getenv("CACHE_TEST_ID") != "" {
		t.Logf("%s", out)
		return
	}
	judgeSuite(t, out)
}

func judgeSuite(t *testing.T, out []byte) {
	t.Helper()
	var results map[string]any
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	passed := 0
	for _, id := range slices.Sorted(maps.Keys(results)) {
		if results[id] == true {
			passed++
			continue
		}
		t.Logf("not passed: %s: %v", id, results[id])
		if strings.HasPrefix(id, "stale-while-revalidate") || strings.HasPrefix(id, "stale-sie") {
			t.Errorf("%s: %v", id, results[id])
		}
	}
	t.Logf("%d of %d passed", passed, len(results))
	if least := len(results) * 260 / 365; passed < least {
		t.Errorf("%d of %d tests passed, want %d", passed, len(results), least)
	}
}
