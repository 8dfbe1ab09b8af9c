//go:build integration

package rehearsal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// lines is a log that goroutines share.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// A fault that was played is told by the report; one of Redis's own is told by the log.
func TestPlayedFaultsAreNotLogged(t *testing.T) { //nolint:paralleltest // the client's logger is the process's
	server := servertest.StartRedis(t)
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	redis.SetLogger(ClientLog{logger})
	o := &redis.UniversalOptions{Addrs: []string{server.Addr()}}
	p := Plan{
		Redis: o, Rate: 500, Keys: twoKeys(Settings{TTL: time.Minute}), Each: 1200 * time.Millisecond, Scenarios: []Scenario{LeaderKilled, RedisCut},
		Configure: func(o *Options) { o.Logger = logger },
	}
	report := rehearse(t, p)
	if cut := report.find(RedisCut, Today).Worst(); cut.Loads == 0 {
		t.Errorf("nothing was cut: %+v", cut)
	}
	if log.text() != "" {
		t.Errorf("what was played was logged:\n%s", log.text())
	}
	h, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRun(&h.plan, Prefix+"own:", Expiry, Today, []Settings{{TTL: time.Minute}, {TTL: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.fleet.close()
	if err := r.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	servertest.Eventually(t, 10*time.Second, "its death to be logged", func() bool {
		return strings.Contains(log.text(), "cache hears no invalidations")
	})
}

func TestErrorsOfTheClientsAreWarnings(t *testing.T) {
	t.Parallel()
	log := &lines{}
	l := ClientLog{slog.New(slog.NewTextHandler(log, nil))}
	l.Printf(t.Context(), "dial: %v", fmt.Errorf("node: %w", errCut))
	l.Printf(t.Context(), "picking a node")
	if log.text() != "" {
		t.Errorf("%s", log.text())
	}
	if l.Printf(t.Context(), "dial: %v", errors.New("refused")); !strings.Contains(log.text(), `level=WARN msg="dial: refused" client=redis`) {
		t.Errorf("%s", log.text())
	}
}
