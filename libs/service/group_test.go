package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal records what happened in which order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// room is a Runner that stops after stopTakes, or fails once fail is closed.
type room struct {
	name      string
	journal   *journal
	stopTakes time.Duration
	stopErr   error
	fail      chan error
	ready     func() error
}

func (r *room) Run(ctx context.Context) error {
	r.journal.add("start " + r.name)
	select {
	case err := <-r.fail:
		return err
	case <-ctx.Done():
	}
	<-time.After(r.stopTakes) // simulated time: how long this room drains
	r.journal.add("stop " + r.name)
	return r.stopErr
}

func (r *room) Ready() error {
	if r.ready == nil {
		return nil
	}
	return r.ready()
}

func module(r *room, needs ...string) Module {
	return Module{Name: r.name, Needs: needs, New: func() (Runner, error) { return r, nil }}
}

func newGroup(t *testing.T, modules ...Module) *Group {
	t.Helper()
	g, err := NewGroup(slog.New(slog.DiscardHandler), modules)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGroupStopsInReverseOrderOfNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		g := newGroup(t,
			module(&room{name: "api", journal: &j}, "database", "cache"),
			module(&room{name: "database", journal: &j, stopTakes: time.Second}),
			module(&room{name: "cache", journal: &j}, "database"),
		)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- g.Run(ctx) }()
		synctest.Wait()
		if err := g.Ready(); err != nil {
			t.Fatalf("ready: %v", err)
		}
		cancel()
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		stops := j.all()[3:]
		if want := []string{"stop api", "stop cache", "stop database"}; !slices.Equal(stops, want) {
			t.Errorf("stopped %v, want %v", stops, want)
		}
	})
}

func TestOrderPutsNeedsFirst(t *testing.T) {
	t.Parallel()
	sorted, err := order([]Module{{Name: "c", Needs: []string{"b"}}, {Name: "a"}, {Name: "b", Needs: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(sorted))
	for _, m := range sorted {
		names = append(names, m.Name)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}

func TestNewGroupRefusesBadTables(t *testing.T) {
	t.Parallel()
	idle := func() (Runner, error) { return &room{journal: &journal{}}, nil }
	cases := []struct {
		name, want string
		modules    []Module
	}{
		{"unknown need", "module a needs x", []Module{{Name: "a", Needs: []string{"x"}, New: idle}}},
		{"twice", "module a is there twice", []Module{{Name: "a", New: idle}, {Name: "a", New: idle}}},
		{"circle", "circle: [a b a]", []Module{{Name: "a", Needs: []string{"b"}, New: idle}, {Name: "b", Needs: []string{"a"}, New: idle}}},
		{"constructor", "module a: no key", []Module{{Name: "a", New: func() (Runner, error) { return nil, errors.New("no key") }}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := NewGroup(slog.New(slog.DiscardHandler), c.modules)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestGroupDrainsBeforeItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		g := newGroup(t, module(&room{name: "api", journal: &j}))
		g.DrainDelay = 3 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- g.Run(ctx) }()
		synctest.Wait()
		cancel()
		<-time.After(2 * time.Second)
		if err := g.Ready(); err == nil || err.Error() != "api: stopping" {
			t.Errorf("ready while draining: %v", err)
		}
		if got := j.all(); slices.Contains(got, "stop api") {
			t.Errorf("stopped before the drain delay was over: %v", got)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestGroupStopsAllWhenOneEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"with an error", errors.New("disk full"), "module b: disk full"},
		{"with nil", nil, "module b: ended by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j journal
				failing := &room{name: "b", journal: &j, fail: make(chan error, 1)}
				g := newGroup(t, module(&room{name: "a", journal: &j}), module(failing, "a"))
				result := make(chan error, 1)
				go func() { result <- g.Run(t.Context()) }()
				synctest.Wait()
				failing.fail <- c.err
				err := <-result
				if err == nil || err.Error() != c.want {
					t.Errorf("error %v, want %s", err, c.want)
				}
				if !slices.Contains(j.all(), "stop a") {
					t.Error("a was not stopped")
				}
			})
		})
	}
}

func TestGroupJoinsErrorsAndBoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		g := newGroup(t,
			module(&room{name: "a", journal: &j, stopErr: errors.New("flush: broken pipe")}),
			module(&room{name: "slow", journal: &j, stopTakes: time.Minute}),
		)
		g.StopTimeout = 5 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- g.Run(ctx) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		err := <-result
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("stopping took %s, want 5s", took)
		}
		for _, want := range []string{"module slow: not stopped after 5s", "module a: flush: broken pipe"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v lacks %q", err, want)
			}
		}
		<-time.After(time.Minute) // let the slow room end, so that nothing leaks
	})
}

func TestGroupNamesWhoIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		away := &room{name: "relay", journal: &j, ready: func() error { return errors.New("postgres away") }}
		g := newGroup(t, module(&room{name: "api", journal: &j}), module(away))
		if err := g.Ready(); err == nil || !strings.Contains(err.Error(), "api: not started") {
			t.Errorf("ready before Run: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- g.Run(ctx) }()
		synctest.Wait()
		if err := g.Ready(); err == nil || err.Error() != "relay: postgres away" {
			t.Errorf("ready: %v, want relay: postgres away", err)
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}
