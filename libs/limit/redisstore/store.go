package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; it protects nothing
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	script "github.com/sluice-platform/sluice/schemas/redis"
)

var _ limit.Store = (*Store)(nil)

// New returns a store on a client, which stays the caller's to close, after
// Close of the store. It does not connect. The client's options must have come
// through Configure, or say the same.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if strings.ContainsAny(o.KeyPrefix, "{}") {
		return nil, fmt.Errorf("key prefix %q holds a brace", o.KeyPrefix)
	}
	if err := checkClient(client); err != nil {
		return nil, err
	}
	o.setDefaults()
	s := &Store{
		client: client, o: o, now: o.Now, instance: rand.Text(), clock: clock{now: o.Now},
		background: context.Background(), closing: make(chan struct{}),
		lanePool: sync.Pool{New: func() any { return new(lane) }},
		memory:   newMemory(o.Remembered), attention: make(chan struct{}, 1), epochKey: epoch.Key(o.KeyPrefix, false, 0),
		askPool: sync.Pool{New: func() any { return new(asking) }},
	}
	s.partPool.New = func() any { return newPart(s.memory, &s.clock) }
	s.servers.start(s)
	s.useScript(script.Decide)
	return s, nil
}

func (s *Store) useScript(text string) {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	s.text, s.sha = text, hex.EncodeToString(sum[:])
}

// Available reports whether calls are tried: false while the breaker of a server
// is open.
func (s *Store) Available() bool { return s.servers.available() }

// Close waits for calls and probes under way, and asks once more for answers that
// are lost.
// No Decide may run or follow.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.closing) })
	s.running.Wait()
	s.servers.close()
	return nil
}

// Decide implements limit.Store. Errors are limit.ErrUnavailable,
// limit.ErrCounterBroken, ctx's own where it was done before the call, or that
// of limit.Counter.Check. After limit.ErrUnavailable nothing is charged, as far
// as the store can see to it: a call that was not sent never is, one that Redis
// comes to too late charges nothing, and what was charged all the same is given
// back when the answer comes in late. Where it is lost, quotas are given back
// by the call's receipt; rates are not (Stats.Lost).
func (s *Store) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	if err := ctx.Err(); err != nil {
		return limit.Decision{}, err
	}
	for i := range counters {
		if err := counters[i].Check(); err != nil {
			return limit.Decision{}, err
		}
	}
	if !needsRedis(counters) {
		now, _ := s.clock.redis(s.now())
		return limit.Decision{Allowed: true, Now: now, States: freeStates(counters)}, nil
	}
	a := s.askPool.Get().(*asking)
	defer func() {
		a.reset(s)
		s.askPool.Put(a)
	}()
	return a.decide(ctx, s, counters)
}

// Clock is Redis's clock, never later than it is as far as its answers tell.
func (s *Store) Clock() time.Time {
	now, _ := s.clock.redis(s.now())
	return now
}

// release makes a part that nobody needs any longer fit for use again.
func (s *Store) release(p *part) {
	p.reset()
	s.partPool.Put(p)
}
