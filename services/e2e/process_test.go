//go:build integration

package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// binary is built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", binary, "../cmd/sluice")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build sluice: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is one `sluice run`, which a test may kill, pause and start again.
type process struct {
	t      *testing.T
	name   string
	target string
	admin  string // host:port
	config string // file
	log    string // file
	cmd    *exec.Cmd
	gone   chan struct{}
}

// newProcess writes the configuration; start runs it.
func newProcess(t *testing.T, name, target string, config map[string]any) *process {
	t.Helper()
	p := &process{t: t, name: name, target: target, admin: freeAddr(t)}
	config["admin"] = map[string]any{"listen": p.admin}
	config["log"] = map[string]any{"level": "info"}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p.config, p.log = filepath.Join(dir, name+".yaml"), filepath.Join(dir, name+".log")
	if err := os.WriteFile(p.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s, its end:\n%s", name, tail(p.log, 60))
		}
	})
	return p
}

func (p *process) start() *process {
	p.t.Helper()
	out, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command(binary, "run", "--target="+p.target, "--config="+p.config)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	gone, cmd := make(chan struct{}), p.cmd
	p.gone = gone
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	return p
}

// running reports whether the process has not ended by itself.
func (p *process) running() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) {
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s to %s: %v", sig, p.name, err)
	}
}

// kill is kill -9, and returns when the process is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	gone := p.gone // who sees it die may start it again at once
	p.signal(syscall.SIGKILL)
	<-gone
}

// stop is SIGTERM; the process must end by itself, cleanly.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s did not stop within 30s of SIGTERM", p.name)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %d after SIGTERM", p.name, code)
	}
}

// readiness is what /readyz says: the code and, where not ready, why.
func (p *process) readiness() (int, string) {
	resp, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	return resp.StatusCode, body.String()
}

func (p *process) awaitReady() *process {
	p.t.Helper()
	why := ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%s not ready: %s", p.name, why)
		}
	}()
	servertest.Eventually(p.t, time.Minute, p.name+" to be ready", func() bool {
		if !p.running() {
			p.t.Fatalf("%s ended:\n%s", p.name, tail(p.log, 40))
		}
		code, text := p.readiness()
		why = text
		return code == http.StatusOK
	})
	return p
}

// metric is the sum of a metric's series whose text contains every one of labels.
func (p *process) metric(name string, labels ...string) float64 {
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	sum := 0.0
next:
	for line := range strings.Lines(body.String()) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || (series != name && !strings.HasPrefix(series, name+"{")) {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue next
			}
		}
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			sum += v
		}
	}
	return sum
}

// freeAddr is not one of those that outgoing connections get, so that a killed process finds it free again.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
