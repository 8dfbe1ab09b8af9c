//go:build integration

package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// childEnv makes the test binary the gateway that is stopped; it holds a child.
const childEnv = "SLUICE_GATEWAY_CHILD"

// child is what a gateway in a process of its own must know.
type child struct {
	Brokers            []string
	Topics, Redis, Dir string
	Budget             time.Duration // of the store
}

// A gateway that is stopped (SIGSTOP) for longer than its connections to Redis
// wait, and goes on: no request, not even one that was under way, sees an error
// or an answer without the store, and the breaker stays closed.
func TestStoppedGatewayBlamesNobody(t *testing.T) {
	if text := os.Getenv(childEnv); text != "" {
		beStopped(t, text)
		return
	}
	d := withPolicies(t)
	f := &faulty{server: servertest.StartRedis(t)}
	f.behindProxy(t, "paused")
	toxic(`{"type":"latency","attributes":{"latency":30}}`)(t, f) // so that calls are under way when it is stopped
	machine := servertest.Watch(t, f.server.Addr(), 30*time.Millisecond)
	process, base, metrics := startChild(t, child{d.stream.Brokers, d.stream.TopicPrefix, f.proxy.Listen, t.TempDir(), 100 * time.Millisecond})
	f.gate = &running{base: base}
	stop := f.load(t)
	defer stop()
	servertest.Eventually(t, patience, "a quiet start", func() bool { return whole(f.since(time.Time{}), 20) })
	loaded := time.Now()
	servertest.Eventually(t, patience, "answers before the pauses", func() bool { return whole(f.since(loaded), 20) })
	quiet := p99(f.since(loaded))
	for range 4 {
		must(t, process.Signal(syscall.SIGSTOP))
		<-time.After(700 * time.Millisecond)
		must(t, process.Signal(syscall.SIGCONT))
		began := time.Now()
		servertest.Eventually(t, patience, "answers after the pause", func() bool { return len(f.since(began)) > 60 })
	}
	stop()
	all := f.since(loaded)
	excused := 0
	for _, s := range all {
		switch right := s.status == 200 && !s.degraded; {
		case right:
		case machine.Late(s.asked.Add(-50*time.Millisecond), s.asked.Add(s.took)):
			excused++
		default:
			t.Errorf("%s is answered %d, degraded %t, after %s", s.policy, s.status, s.degraded, s.took)
		}
	}
	t.Logf("%d answers round four pauses, %d without the store while the machine was late; p99 %s quiet, %s in all", len(all), excused, quiet, p99(all))
	if excused > 0 {
		return // and so do the metrics
	}
	told := scrape(t, metrics)
	for metric, want := range map[string]string{"sluice_store_available": "1", "sluice_store_lost_total": "0"} {
		if !strings.Contains(told, "\n"+metric+" "+want+"\n") {
			t.Errorf("%s is not %s", metric, want)
		}
	}
}

// startChild runs a gateway in a process of its own, until the test ends, and
// returns where it serves requests and metrics.
func startChild(t testing.TB, c child) (p *os.Process, base, metrics string) {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStoppedGatewayBlamesNobody$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may have ended
		_ = in.Close()                          // it stops when nobody holds the other end
		_ = cmd.Wait()                          // the test has its answers
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "serving %s %s", &base, &metrics); n == 2 {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the child
			return cmd.Process, base, metrics
		}
	}
	t.Fatalf("the child ended before it served: %v", lines.Err())
	return nil, "", ""
}

// beStopped is the child.
func beStopped(t *testing.T, text string) {
	t.Helper()
	var c child
	must(t, json.Unmarshal([]byte(text), &c))
	reg := prometheus.NewRegistry()
	d := newDeployment(t, c.Brokers, c.Topics)
	d.registerer = reg
	g := d.runReady("gw-child", c.Redis, "", func(cfg *Config) {
		cfg.Spool.Dir = c.Dir
		cfg.Store.Budget, cfg.Store.Timeout = c.Budget, max(c.Budget, DefaultConfig().Store.Timeout)
	})
	metrics := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer metrics.Close()
	fmt.Printf("serving %s %s\n", g.base, metrics.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	return do(t, http.MethodGet, url).body
}
