package restoretest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

// Whole says that there is nothing to restore, of a Redis that no keeper watches.
func Whole(t testing.TB, client redis.UniversalClient, keyPrefix string) {
	t.Helper()
	r := restore.New(client, keyPrefix)
	all, err := r.Look(t.Context(), true)
	for i := 0; err == nil && i < len(all); i++ {
		p := all[i]
		if p.Whole {
			continue
		}
		if p, err = r.Begin(t.Context(), p); err == nil {
			err = r.Seal(t.Context(), p)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Keep does what a keeper does that has nothing to bring back, at start and after
// each loss, until it is stopped.
func Keep(t testing.TB, client redis.UniversalClient, keyPrefix string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	looked, ended := make(chan struct{}), make(chan struct{})
	go func() { // owned by stop, which waits for it
		defer close(ended)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		r := restore.New(client, keyPrefix)
		var last []restore.Process
		for first := true; ctx.Err() == nil; first = false {
			last = keep(ctx, r, last)
			if first {
				close(looked)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	<-looked
	return func() { cancel(); <-ended }
}

// keep says of what is not whole that nothing is to be brought back. Where Redis is
// away, the next look does it. It returns nothing where all epochs are to be read.
func keep(ctx context.Context, r *restore.Restorer, last []restore.Process) []restore.Process {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all, err := r.Look(ctx, last == nil)
	if err == nil && last != nil && !restore.SameSlots(all, last) {
		all, err = r.Look(ctx, true)
	}
	lost := false
	for _, p := range all {
		if err == nil && !p.Whole {
			lost = true
			if p, err = r.Begin(ctx, p); err == nil {
				err = r.Seal(ctx, p)
			}
		}
	}
	if err != nil || lost {
		return nil
	}
	return all
}
