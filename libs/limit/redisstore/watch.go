package redisstore

import (
	"context"
	"slices"
	"time"
)

// Watch looks again and again how each process stands, and remembers what it
// must to know whether a slot that has moved came with all that was in it, and
// whether a process has been a copy of another meanwhile. It is for one
// goroutine.
type Watch struct {
	r        *Restorer
	slots    []Process           // as the last look found them
	layout   *layout             // of when all of a Cluster was whole last, and at rest
	lineages map[string]sighting // by address
	now      func() time.Time
}

// Watch returns a watch that has seen nothing yet.
func (r *Restorer) Watch() *Watch {
	return &Watch{r: r, lineages: map[string]sighting{}, now: time.Now}
}

// AtRest reports whether it has seen all of a Cluster whole with no slot on its
// way, so that it can take over slots that move from now on.
func (w *Watch) AtRest() bool { return w.layout != nil }

// Look tells how each process stands: by all of its markers with every, and
// where slots have changed hands since the last look; else by the one that
// speaks for all. A slot that moved between processes that have lost nothing is
// marked as that one's own which it came to, without a restore. A process that
// has been a copy of another since it was whole is not, whatever its markers say.
func (w *Watch) Look(ctx context.Context, every bool) ([]Process, error) {
	began := w.now()
	all, err := w.r.Look(ctx, every)
	if err == nil && !every && w.slots != nil && !sameSlots(all, w.slots) {
		every = true
		all, err = w.r.Look(ctx, every)
	}
	if err == nil {
		err = w.judge(ctx, all, began)
	}
	if err != nil {
		return nil, err
	}
	if every {
		if l := w.r.settled(ctx, all); l != nil {
			w.layout = l
		}
	}
	if all, err = w.r.took(ctx, w.layout, all); err != nil {
		return nil, err
	}
	w.slots = all
	return all, nil
}

func sameSlots(a, b []Process) bool {
	return slices.EqualFunc(a, b, func(a, b Process) bool { return a.addr == b.addr && slices.Equal(a.slots, b.slots) })
}
