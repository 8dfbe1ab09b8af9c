package cache

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A TTL that ends before the waiters wake: they get the value of the run they waited for, and those who come later do
// not.
func TestTTLShorterThanTheWakeUp(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	leader := newL2(client, "p:", 10*time.Second, 3*time.Second, nil)
	waiter := newL2(client, "p:", 10*time.Second, 3*time.Second, nil)
	ctx := context.Background()
	get := func(s *l2, take bool, want int64, status int) answer {
		t.Helper()
		a, err := s.get(ctx, "k", s.token, take, 0, want)
		if err != nil || a.status != status {
			t.Fatalf("status %d, want %d: %v", a.status, status, err)
		}
		return a
	}
	run := get(leader, true, 0, statusLeader)
	if again := get(leader, true, 0, statusLeader); again.fence != run.fence {
		t.Fatalf("asked again after a lost reply, the leader has run %d and not %d", again.fence, run.fence)
	}
	if locked := get(waiter, true, 0, statusLocked); locked.fence != run.fence || locked.lockFor <= 0 {
		t.Fatalf("waits for %+v, the run is %d", locked, run.fence)
	}
	e := envelope{fence: run.fence, logical: time.Millisecond, physical: leastPhysical, payload: []byte(`"v"`)}
	if status, _, err := leader.write(ctx, "k", leader.token, &e); err != nil || status != writeStored {
		t.Fatalf("write: %d, %v", status, err)
	}
	mini.FastForward(100 * time.Millisecond)
	if a := get(waiter, true, run.fence, statusValue); a.fence != run.fence {
		t.Fatalf("the waiter got run %d", a.fence)
	}
	get(waiter, false, 0, statusNone)
	// A reply that was lost makes the client send the write again: it is the same write.
	if status, _, err := leader.write(ctx, "k", leader.token, &e); err != nil || status != writeStored {
		t.Fatalf("second write: %d, %v", status, err)
	}
}
