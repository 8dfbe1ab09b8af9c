//go:build integration

package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

// rehearsing is sluice cache rehearse beside the stack.
func (s *stack) rehearsing(list string, args ...string) (cmd *exec.Cmd, out, progress *bytes.Buffer) {
	cmd = exec.CommandContext(s.t.Context(), binary, append([]string{"cache", "rehearse", "--paths", "-", "--rate", "300", "--source-latency", "50ms"}, args...)...)
	cmd.Env = append(os.Environ(), "SLUICE_URL=http://"+s.control, "SLUICE_TOKEN="+adminToken,
		"SLUICE_REDIS_CACHE_ADDR="+s.redisAddr, "SLUICE_REDIS_CACHE_KEY_PREFIX="+s.cachePrefix, "SLUICE_GATEWAY_CACHE_REDIS_TIMEOUT=2s")
	out, progress = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(list), out, progress
	return cmd, out, progress
}

// A rehearsal beside a running stack finds what is stored, says what stampedes, and leaves stack, service and Redis as
// they were; also when it is interrupted.
func TestRehearsalBesideARunningStack(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.cachePrefix = s.redisPrefix + "answers:"
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	for name, setting := range map[string]*catalog.Cache{"svc": {TTL: "10m", Shared: true}, "raw": nil} {
		s.mustREST("POST", "/v1/services", nil, catalog.Service{
			Name: name, Prefix: "/" + name + "/", Upstreams: []catalog.Upstream{{URL: s.upstream.URL}}, Cache: setting,
		}, http.StatusCreated)
	}
	g := s.gateway("gw")
	g.start()
	g.awaitReady()
	s.awaitEqual(g)
	servertest.Eventually(t, 30*time.Second, "the gateway to store answers", func() bool {
		out, err := s.warm(g, "/svc/a\n/svc/b?x=1\n", "-f", "-", "--rate", "100")
		return err == nil && strings.Contains(out, "2 of 2 paths: 2 hits")
	})
	served := s.served.Load()
	rdb := redis.NewClient(&redis.Options{Addr: s.redisAddr})
	t.Cleanup(func() { _ = rdb.Close() })
	copies := func() int { return len(rdb.Keys(t.Context(), rehearsal.Prefix+"*").Val()) }

	cmd, out, progress := s.rehearsing("/svc/a\n/svc/a\n/svc/b?x=1\n/raw/c\n", "--route", "svc", "--duration", "6s", "--scenario", "expiry", "--output", "json")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out, progress)
	}
	var report struct {
		Runs      []struct{ Keys []struct{ Key string } }
		Stampeded map[string][]string
		SpeedUp   float64
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if keys := report.Runs[0].Keys; len(keys) != 2 || keys[0].Key != g.addr+"/svc/a" || keys[1].Key != g.addr+"/svc/b?x=1" || report.SpeedUp < 100 {
		t.Errorf("not what is stored: %+v, sped up %g times", keys, report.SpeedUp)
	}
	if len(report.Stampeded["plain"]) == 0 || len(report.Stampeded["today"]) != 0 || !strings.Contains(progress.String(), "left out: 1 that are of other routes") {
		t.Errorf("stampeded %v\n%s", report.Stampeded, progress)
	}

	cmd, out, progress = s.rehearsing("/raw/c\n", "--route", "raw", "--duration", "3s", "--scenario", "expiry")
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "ttl: 1m") || !strings.Contains(out.String(), "1 of 1 keys stampeded, not cached: /raw/c") || !strings.Contains(progress.String(), "1 of 1 keys stampeded with the settings of today, such as /raw/c") {
		t.Errorf("a route that is not cached: exit %d\n%s%s", cmd.ProcessState.ExitCode(), out, progress)
	}

	cmd, out, progress = s.rehearsing("/svc/a\n", "--route", "svc", "--duration", "5m", "--scenario", "leader-killed")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 20*time.Second, "copies in Redis", func() bool { return copies() > 1 })
	_ = cmd.Process.Signal(os.Interrupt)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(progress.String(), "context canceled") ||
		strings.Contains(out.String(), "nothing to set") || strings.Contains(out.String(), "stampeded, as today") {
		t.Errorf("interrupted: exit %d\n%s%s", cmd.ProcessState.ExitCode(), out, progress)
	}
	if n := copies(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if got := g.hit("/svc/a", as("acme")); !strings.HasPrefix(got.header.Get("Cache-Status"), "sluice; hit") || s.served.Load() != served {
		t.Errorf("the rehearsal reached the service, or what is stored: %v, %d requests", got.header, s.served.Load()-served)
	}
}
