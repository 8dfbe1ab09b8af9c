package service

import (
	"context"
	"time"
)

// Times of the report on readiness.
const (
	reportPoll  = 500 * time.Millisecond
	reportAfter = 5 * time.Second // most starts are done by then
	reportEvery = time.Minute
)

// reporting runs the report until stop is called, which waits for its end.
func (g *Group) reporting() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.report(ctx)
	}()
	return func() { cancel(); <-done }
}

// report logs which modules have not been ready for a while, and why, again
// each minute; and that all are ready, once at first and once after each time
// it had said that they are not.
func (g *Group) report(ctx context.Context) {
	poll := time.NewTicker(reportPoll)
	defer poll.Stop()
	unreadySince, next := time.Now(), reportAfter
	ready, owed := false, true // owed: the all-clear
	for {
		isReady := g.Ready() == nil
		switch waited := time.Since(unreadySince); {
		case isReady && owed:
			g.log.Info("all modules are ready", "after", waited.Round(time.Millisecond))
			owed = false
		case !isReady && ready:
			unreadySince, next = time.Now(), reportAfter
		case !isReady && waited >= next:
			g.logUnready(waited)
			next, owed = next+reportEvery, true
		}
		ready = isReady
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// logUnready writes a line for each module that is not ready.
func (g *Group) logUnready(waited time.Duration) {
	for _, s := range g.Status() {
		if !s.Ready {
			g.log.Warn("module is not ready", "module", s.Name, "for", waited.Round(time.Second), "reason", s.Reason)
		}
	}
}
