package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluice-platform/sluice/bench/fleet"
)

// node is one process. It opens its contender, asks a little and says ready; for a line on its standard input it asks as
// its scenario wants, reports how it went, and ends.
type node struct {
	traffic
	Contender, Scenario, Redis string
	Limits                     []int64
}

const sayReady = "ready"

// What a parent tells.
const (
	tellGo     = "go"
	tellSilent = "silent" // Redis has stopped
	tellBack   = "back"   // it goes on
	tellEnd    = "end"
)

// patience is what a decision may take before it is an error.
const patience = 30 * time.Second

func (n node) run(ctx context.Context) error {
	l, err := n.open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", n.Contender, err)
	}
	ctx, cancel := context.WithTimeout(ctx, n.For+n.Silence+patience)
	defer cancel()
	if err := n.warm(ctx, l); err != nil {
		return fmt.Errorf("warm %s: %w", n.Contender, err)
	}
	fleet.Say(sayReady)
	parent := bufio.NewScanner(os.Stdin)
	parent.Scan()
	var t tally
	before := spent()
	switch n.Scenario {
	case cost:
		n.askOn(ctx, l, &t)
	case rate:
		fleet.AtRate(ctx, float64(n.Rate)/float64(n.Nodes), n.For, func(due time.Time) { n.one(ctx, l, n.tenant(), due, &t) })
	case race:
		n.askAtOnce(ctx, l, &t)
	case silence:
		n.askThrough(ctx, l, parent, &t)
	}
	t.CPU = spent() - before
	return fleet.Report(&t)
}

func (n node) open(ctx context.Context) (limiter, error) {
	for _, c := range contenders {
		if c.name == n.Contender {
			return c.open(ctx, n)
		}
	}
	return limiter{}, fmt.Errorf("no contender %q", n.Contender)
}

// warm has connections opened and scripts loaded, until all workers are answered at one time.
func (n node) warm(ctx context.Context, l limiter) error {
	for {
		var wait sync.WaitGroup
		var failed atomic.Pointer[error]
		for i := range n.Workers {
			wait.Go(func() {
				if _, err := l.ask(ctx, fmt.Sprintf("warm-%d-%d", os.Getpid(), i)); err != nil {
					failed.Store(&err)
				}
			})
		}
		wait.Wait()
		switch err := failed.Load(); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return *err
		}
	}
}

var turn atomic.Int64

func (n node) tenant() string { return "tenant-" + strconv.FormatInt(turn.Add(1)%int64(n.Tenants), 10) }

// one is a request that was due.
func (n node) one(ctx context.Context, l limiter, tenant string, due time.Time, t *tally) {
	passed, err := l.ask(ctx, tenant)
	t.count(time.Since(due), passed, err)
}

func (n node) workers(do func()) {
	var wait sync.WaitGroup
	for range n.Workers {
		wait.Go(do)
	}
	wait.Wait()
}

func (n node) askOn(ctx context.Context, l limiter, t *tally) {
	end := time.Now().Add(n.For)
	n.workers(func() {
		for now := time.Now(); now.Before(end); now = time.Now() {
			n.one(ctx, l, n.tenant(), now, t)
		}
	})
}

func (n node) askAtOnce(ctx context.Context, l limiter, t *tally) {
	n.workers(func() {
		for range n.Asks {
			n.one(ctx, l, racers, time.Now(), t)
		}
	})
}

// racers is the tenant all race for.
const racers = "racers"

// slow is an answer that nobody would call one of a limiter that is back.
const slow = 100 * time.Millisecond

// askThrough asks at a rate until the parent says it is the end, counts what was due while Redis was silent, and notes
// when answers were good again.
func (n node) askThrough(ctx context.Context, l limiter, parent *bufio.Scanner, t *tally) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var silent, back atomic.Pointer[time.Time]
	end, stop := context.WithCancel(ctx)
	go func() { // ends with the process
		defer stop()
		for parent.Scan() {
			now := time.Now()
			switch parent.Text() {
			case tellSilent:
				silent.Store(&now)
			case tellBack:
				back.Store(&now)
			case tellEnd:
				return
			}
		}
	}()
	fleet.AtRate(end, float64(n.SilenceRate)/float64(n.Nodes), time.Duration(math.MaxInt64), func(due time.Time) {
		passed, err := l.ask(ctx, n.tenant())
		began, ended, took := silent.Load(), back.Load(), time.Since(due)
		switch {
		case began == nil || due.Before(*began):
		case ended == nil || due.Before(*ended):
			t.count(took, passed, err)
		case err != nil || took > slow:
			t.late(time.Since(*ended))
		}
	})
}

// spent is the processor time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
