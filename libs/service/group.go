package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Defaults of a Group's times.
const (
	DefaultDrainDelay  = 0 * time.Second
	DefaultStopTimeout = 15 * time.Second
)

// phases of a Group, in order.
const (
	phaseNew int32 = iota
	phaseRunning
	phaseStopping
)

// Group owns the modules of one process. Make it with NewGroup; Run once.
type Group struct {
	// DrainDelay is how long modules go on serving after readiness went off.
	// Set before Run.
	DrainDelay time.Duration
	// StopTimeout bounds the wait for each module's Run to return. Set before Run.
	StopTimeout time.Duration

	log     *slog.Logger
	members []*member
	phase   atomic.Int32
	// exited carries each member whose Run returned; it has room for all, so
	// that a member given up on can still end.
	exited chan *member
}

// member is a module with its Runner and, once running, its own context:
// cancelling the caller's must not stop all modules at once.
type member struct {
	name   string
	runner Runner
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

// NewGroup orders the modules by their needs and constructs each; it starts
// nothing. An error names the module.
func NewGroup(log *slog.Logger, modules []Module) (*Group, error) {
	sorted, err := order(modules)
	if err != nil {
		return nil, err
	}
	g := &Group{
		DrainDelay: DefaultDrainDelay, StopTimeout: DefaultStopTimeout,
		log: log, exited: make(chan *member, len(sorted)),
	}
	for _, m := range sorted {
		runner, err := m.New()
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.Name, err)
		}
		g.members = append(g.members, &member{name: m.Name, runner: runner, done: make(chan struct{})})
	}
	return g, nil
}

// Run starts the modules in dependency order and blocks until ctx is cancelled
// or a module ends by itself; then it stops all in reverse order. It returns
// nil after a clean stop, else the modules' errors joined, each with its name.
func (g *Group) Run(ctx context.Context) error {
	for _, m := range g.members {
		g.start(ctx, m)
	}
	g.phase.CompareAndSwap(phaseNew, phaseRunning)
	stopReporting := g.reporting()

	var cause error
	select {
	case <-ctx.Done():
		stopReporting()
		g.phase.Store(phaseStopping)
		g.drain()
	case m := <-g.exited:
		stopReporting()
		g.phase.Store(phaseStopping)
		cause = m.unexpected()
		g.log.Error("a module ended, stopping all", "module", m.name, "error", cause)
	}
	return errors.Join(cause, g.stop())
}

func (g *Group) start(ctx context.Context, m *member) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.cancel = cancel
	g.log.Debug("module starts", "module", m.name)
	go func() {
		m.err = m.runner.Run(own)
		close(m.done)
		g.exited <- m
	}()
}

// drain waits DrainDelay, or less when a module ends meanwhile: its error is
// collected by stop.
func (g *Group) drain() {
	if g.DrainDelay <= 0 {
		return
	}
	g.log.Info("not ready any more, draining", "delay", g.DrainDelay)
	timer := time.NewTimer(g.DrainDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.exited:
	}
}

// stop cancels the modules one after another in reverse order, each only once
// the one before has returned or used up its time.
func (g *Group) stop() error {
	var errs []error
	for i := len(g.members) - 1; i >= 0; i-- {
		m := g.members[i]
		began := time.Now()
		m.cancel()
		if err := m.wait(g.StopTimeout); err != nil {
			errs = append(errs, err)
			continue
		}
		g.log.Debug("module stopped", "module", m.name, "took", time.Since(began))
	}
	return errors.Join(errs...)
}

func (m *member) wait(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-m.done:
	case <-timer.C:
		return fmt.Errorf("module %s: not stopped after %s", m.name, limit)
	}
	if m.err != nil && !errors.Is(m.err, errReported) {
		return fmt.Errorf("module %s: %w", m.name, m.err)
	}
	return nil
}

// errReported marks an error that Run already returns as the cause.
var errReported = errors.New("reported")

// unexpected is the error of a module that nobody told to stop.
func (m *member) unexpected() error {
	err := m.err
	m.err = errReported
	if err == nil {
		return fmt.Errorf("module %s: ended by itself", m.name)
	}
	return fmt.Errorf("module %s: %w", m.name, err)
}

// Status is a module's readiness.
type Status struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Reason says why it is not ready.
	Reason string `json:"reason,omitempty"`
	// Degraded says what is wrong although it is ready.
	Degraded string `json:"degraded,omitempty"`
}

// Status returns each module's readiness in start order. Safe for concurrent use.
func (g *Group) Status() []Status {
	all := make([]Status, 0, len(g.members))
	for _, m := range g.members {
		s := Status{Name: m.name, Ready: true}
		if err := g.readyOf(m); err != nil {
			s.Ready, s.Reason = false, err.Error()
		} else if d, ok := m.runner.(Degrader); ok {
			s.Degraded = d.Degraded()
		}
		all = append(all, s)
	}
	return all
}

func (g *Group) readyOf(m *member) error {
	switch g.phase.Load() {
	case phaseNew:
		return errors.New("not started")
	case phaseStopping:
		return errors.New("stopping")
	}
	if r, ok := m.runner.(Readier); ok {
		return r.Ready()
	}
	return nil
}

// Ready returns nil when every module is ready, else the reasons joined, each
// with its module's name. Safe for concurrent use.
func (g *Group) Ready() error {
	var errs []error
	for _, s := range g.Status() {
		if !s.Ready {
			errs = append(errs, fmt.Errorf("%s: %s", s.Name, s.Reason))
		}
	}
	return errors.Join(errs...)
}

// adminRoutes mounts the modules' own admin routes and returns where, in
// patterns as a mux takes them.
func (g *Group) adminRoutes(mux *http.ServeMux) (mounted []string) {
	taken := map[string]bool{}
	for _, m := range g.members {
		h, ok := m.runner.(AdminHandler)
		if !ok {
			continue
		}
		own := http.NewServeMux()
		h.AdminRoutes(own)
		prefix := "/debug/" + m.name
		mux.Handle(prefix+"/", http.StripPrefix(prefix, own))
		mounted = append(mounted, prefix+"/")
		root, ok := m.runner.(RootAdminHandler)
		if !ok {
			continue
		}
		for _, pattern := range root.RootAdminRoutes() {
			if !taken[pattern] {
				mux.Handle(pattern, own)
				taken[pattern] = true
				mounted = append(mounted, pattern)
			}
		}
	}
	return mounted
}

// Well reports whether every module is ready and none is degraded. Safe for
// concurrent use.
func (g *Group) Well() bool {
	for _, s := range g.Status() {
		if !s.Ready || s.Degraded != "" {
			return false
		}
	}
	return true
}
