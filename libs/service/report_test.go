package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a log of messages, each with the module and the reason it names.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "module" || a.Key == "reason" {
			line += fmt.Sprintf(" %s=%s", a.Key, a.Value)
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	return nil
}

func (l *lines) since(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all[n:])
}

func TestGroupReportsWhoIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var log lines
		var up atomic.Bool
		kafka := func() error {
			if up.Load() {
				return nil
			}
			return errors.New("kafka: unreachable")
		}
		g, err := NewGroup(slog.New(&log), []Module{module(&room{name: "api", journal: &j}), module(&room{name: "gateway", journal: &j, ready: kafka})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- g.Run(ctx) }()
		unready := "module is not ready module=gateway reason=kafka: unreachable"
		said := 0
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			got := log.since(said)
			said += len(got)
			if !slices.Equal(got, want) {
				t.Errorf("logged %q, want %q", strings.Join(got, "; "), strings.Join(want, "; "))
			}
		}
		expect(4 * time.Second)
		expect(2*time.Second, unready)
		expect(58 * time.Second)
		expect(2*time.Second, unready)
		up.Store(true)
		expect(time.Second, "all modules are ready")
		expect(5 * time.Minute)
		up.Store(false)
		expect(3 * time.Second)
		up.Store(true) // before anything was said
		expect(time.Minute)
		up.Store(false)
		expect(6*time.Second, unready)
		up.Store(true)
		expect(time.Second, "all modules are ready")
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}
