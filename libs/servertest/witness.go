package servertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// witnessTick is how often a witness asks.
const witnessTick = time.Millisecond

// Witness asks a Redis for nothing but PONG, on a connection of its own, until the test ends. What it waits for is the
// machine, or that Redis: a test of a time-out can tell by it what was not the doing of what it tests.
type Witness struct {
	after time.Duration

	mu   sync.Mutex
	last time.Time // when it was answered last
	late [][2]time.Time
}

// Watch starts a witness at host:port, to whom what takes longer than after is late.
func Watch(t testing.TB, addr string, after time.Duration) *Witness {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w := &Witness{after: after + witnessTick, last: time.Now()}
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(t.Context(), client) })
	t.Cleanup(func() {
		watching.Wait()
		_ = client.Close()
	})
	return w
}

func (w *Witness) watch(ctx context.Context, client *redis.Client) {
	tick := time.NewTicker(witnessTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = client.Ping(ctx).Err() // of interest is only when it returns
		w.mu.Lock()
		now := time.Now()
		if now.Sub(w.last) > w.after {
			w.late = append(w.late, [2]time.Time{w.last, now})
		}
		w.last = now
		w.mu.Unlock()
		<-tick.C
	}
}

// Late reports whether the machine, or Redis, was late at any time between the two.
func (w *Witness) Late(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to.After(w.last) && time.Since(w.last) > w.after {
		return true // it is late just now
	}
	for _, l := range w.late {
		if l[0].Before(to) && l[1].After(from) {
			return true
		}
	}
	return false
}
