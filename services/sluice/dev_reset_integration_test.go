//go:build integration

package sluice

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// A user who deletes the data folder, or asks for it, begins anew: also where
// PostgreSQL's data had to lie elsewhere. A server that is killed comes back.
func TestDevBeginsAnew(t *testing.T) {
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	data, offset := filepath.Join(closed, "data"), freeOffset(t)

	first := startDev(t, data, offset).awaitReady()
	postgres := first.postgresData()
	removeAfterwards(t, postgres)
	first.changeDemoRules()
	first.survivesTheDeathOf("redis-server")
	first.stop()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}

	second := startDev(t, data, offset).awaitReady()
	second.hasTheDemoRules()
	outside := !strings.HasPrefix(postgres, data)
	if told := strings.Contains(second.output(), "discarded the PostgreSQL data in "+filepath.Dir(postgres)); told != outside {
		t.Errorf("data in %s; the second start says\n%s", postgres, second.output())
	}
	second.changeDemoRules()
	second.stop()

	third := startDev(t, data, offset, "--reset").awaitReady()
	third.hasTheDemoRules()
	for _, path := range []string{filepath.Dir(postgres), filepath.Join(data, "redis"), filepath.Join(data, "kafka"), filepath.Join(data, "spool")} {
		if !strings.Contains(third.output(), path) {
			t.Errorf("the output does not say that %s was deleted:\n%s", path, third.output())
		}
	}
	third.stop()
}

func (r *devRun) stop() {
	r.t.Helper()
	r.signal(syscall.SIGTERM)
	if code := r.awaitEnd(); code != 0 {
		r.t.Errorf("exit code %d after SIGTERM", code)
	}
}

// hasTheDemoRules: the one that changeDemoRules deletes is there.
func (r *devRun) hasTheDemoRules() {
	r.t.Helper()
	if code, _, body := r.do(http.MethodGet, portControlplane, "/v1/rules/report-quota", "", adminHeader, adminHeaderValue); code != http.StatusOK {
		r.t.Errorf("the demo rule answers %d %s", code, body)
	}
}

// survivesTheDeathOf kills a child by its program's name.
func (r *devRun) survivesTheDeathOf(program string) {
	r.t.Helper()
	killed := false
	for _, pid := range r.children() {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != program {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			r.t.Fatal(err)
		}
		killed = true
	}
	if !killed {
		r.t.Fatalf("no child is a %s", program)
	}
	servertest.Eventually(r.t, 30*time.Second, program+" to run again", func() bool {
		code, _, _ := r.do(http.MethodGet, portAdmin, "/readyz", "")
		return code == http.StatusOK && strings.Contains(r.output(), "the server runs again")
	})
}
