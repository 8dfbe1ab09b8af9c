package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// history drives the scripts by processes that come and go, and checks every step against what must hold: the source's
// version is known at each instant, each value carries the version that its run saw.
type history struct {
	mini  *miniredis.Miniredis
	procs []*l2
	runs  []*run // by process; nil is idle
	now   time.Time

	version   int // of the source; each change is followed by its invalidation
	grants    int64
	owner     int // who holds the lock, -1 is nobody
	leaseEnds time.Time
	accepted  int64 // fence of the value last stored
}

type run struct {
	fence   int64
	version int // what its load saw
}

const historyLease = 3 * time.Second

func newHistory(t *rapid.T, mini *miniredis.Miniredis, client redis.UniversalClient, n int) *history {
	mini.FlushAll()
	h := &history{mini: mini, now: time.Unix(1_800_000_000, 0), owner: -1, runs: make([]*run, n)}
	mini.SetTime(h.now)
	for range n {
		h.procs = append(h.procs, newL2(client, "h:", 10*time.Second, historyLease, nil))
	}
	return h
}

func (h *history) ask(t *rapid.T, p int) {
	if h.runs[p] != nil {
		return
	}
	a, err := h.procs[p].get(context.Background(), "k", h.procs[p].token, true, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	switch a.status {
	case statusValue:
		var version int
		e, err := decodeEnvelope(a.value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(string(e.payload), &version)
		if version != h.version {
			t.Fatalf("fresh value of version %d after the invalidation of version %d", version, h.version)
		}
	case statusLeader:
		if h.owner >= 0 && h.now.Before(h.leaseEnds) {
			t.Fatalf("process %d leads while %d has the lease", p, h.owner)
		}
		if a.fence <= h.grants {
			t.Fatalf("fence %d after %d", a.fence, h.grants)
		}
		h.grants, h.owner, h.leaseEnds = a.fence, p, h.now.Add(historyLease)
		h.runs[p] = &run{fence: a.fence, version: h.version}
	case statusLocked:
		if h.owner < 0 || !h.now.Before(h.leaseEnds) {
			t.Fatal("locked by nobody")
		}
	case statusFailed:
	default:
		t.Fatalf("status %d", a.status)
	}
}

func (h *history) finish(t *rapid.T, p int) {
	r := h.runs[p]
	if r == nil {
		return
	}
	e := envelope{fence: r.fence, logical: 20 * time.Second, physical: 40 * time.Second, payload: fmt.Append(nil, r.version)}
	status, fence, err := h.procs[p].write(context.Background(), "k", h.procs[p].token, &e)
	if err != nil {
		t.Fatal(err)
	}
	owns := h.owner == p && h.now.Before(h.leaseEnds)
	switch {
	case status == writeStored && (!owns || r.version != h.version):
		t.Fatalf("stored version %d of %d by process %d, the owner is %d", r.version, h.version, p, h.owner)
	case status == writeLost && owns:
		t.Fatal("the owner's write is refused")
	case status == writeSuperseded:
		if !owns || fence <= h.grants {
			t.Fatalf("superseded under fence %d after %d, owner %t", fence, h.grants, owns)
		}
		// It loads again, under the same lock.
		h.grants, h.leaseEnds = fence, h.now.Add(historyLease)
		h.runs[p] = &run{fence: fence, version: h.version}
		return
	}
	if status == writeStored {
		if r.fence <= h.accepted {
			t.Fatalf("fence %d stored after %d", r.fence, h.accepted)
		}
		h.accepted, h.owner = r.fence, -1
	}
	h.runs[p] = nil
}

func (h *history) failRun(t *rapid.T, p int) {
	r := h.runs[p]
	if r == nil {
		return
	}
	if err := h.procs[p].fail(context.Background(), "k", h.procs[p].token, failure{kind: 'f', fence: r.fence, count: 1, text: "x"}, failureMemory); err != nil {
		t.Fatal(err)
	}
	if h.owner == p {
		h.owner = -1
	}
	h.runs[p] = nil
}

// crash is kill -9: the process forgets, the lock stays for the lease. Its successor has another token.
func (h *history) crash(_ *rapid.T, p int) {
	h.runs[p] = nil
	h.procs[p] = newL2(h.procs[p].client, "h:", 10*time.Second, historyLease, nil)
}

func (h *history) renew(t *rapid.T, p int) {
	r := h.runs[p]
	if r == nil {
		return
	}
	mine, err := h.procs[p].renew(context.Background(), "k", h.procs[p].token, r.fence)
	if err != nil {
		t.Fatal(err)
	}
	if owns := h.owner == p && h.now.Before(h.leaseEnds); mine != owns {
		t.Fatalf("renewed %t, owns %t", mine, owns)
	}
	if mine {
		h.leaseEnds = h.now.Add(historyLease)
	}
}

func (h *history) change(t *rapid.T, p int, hard bool) {
	h.version++
	fence, err := h.procs[p].invalidate(context.Background(), "k", hard, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if fence <= h.accepted {
		t.Fatalf("barrier %d is below the value of %d", fence, h.accepted)
	}
	if hard && h.mini.Exists("h:{k}:v") {
		t.Fatal("cleared, and there")
	}
}

func (h *history) pass(d time.Duration) {
	h.now = h.now.Add(d)
	h.mini.SetTime(h.now)
	h.mini.FastForward(d)
	if h.owner >= 0 && !h.now.Before(h.leaseEnds) {
		h.owner = -1
	}
}

func (h *history) flush() {
	h.pass(time.Millisecond)
	h.mini.FlushAll()
	h.owner = -1
}

// What is served as fresh is of the source's version, at most one process leads at a time, fences only grow, a write
// that is late by lease, by invalidation or by a flush is refused, the owner's never is: in any order of events.
func TestHistories(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, mini, client, 3)
		proc := func() int { return rapid.IntRange(0, len(h.procs)-1).Draw(t, "process") }
		var log []string
		note := func(s string) { log = append(log, s) }
		defer func() {
			if t.Failed() {
				t.Log(strings.Join(log, " "))
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"ask":    func(t *rapid.T) { note("ask"); h.ask(t, proc()) },
			"finish": func(t *rapid.T) { note("finish"); h.finish(t, proc()) },
			"fail":   func(t *rapid.T) { note("fail"); h.failRun(t, proc()) },
			"renew":  func(t *rapid.T) { note("renew"); h.renew(t, proc()) },
			"crash":  func(t *rapid.T) { note("crash"); h.crash(t, proc()) },
			"change": func(t *rapid.T) { note("change"); h.change(t, proc(), rapid.Bool().Draw(t, "hard")) },
			"pass": func(t *rapid.T) {
				note("pass")
				h.pass(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"flush": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "flush") == 0 {
					note("flush")
					h.flush()
				}
			},
		})
	})
}
