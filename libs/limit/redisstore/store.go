package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; it protects nothing
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	script "github.com/sluice-platform/sluice/schemas/redis"
)

// DefaultTimeout is how long a call may take where Options say nothing.
const DefaultTimeout = 50 * time.Millisecond

// Options say how the store behaves; the zero value is usable.
type Options struct {
	// KeyPrefix begins every key, so that deployments can share a Redis; it
	// must not hold { or }, which would move the hash tag.
	KeyPrefix string
	// Timeout bounds a call, connecting included; default DefaultTimeout.
	Timeout time.Duration
	// Breaker says when calls are no longer tried; its Silence defaults to
	// Timeout, its Now to Now.
	Breaker breaker.Options
	// Now is the local clock, used to guess Redis's; nil is time.Now.
	Now func() time.Time
}

// Store decides on Redis. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	timeout time.Duration
	now     func() time.Time
	breaker *breaker.Breaker
	probes  sync.WaitGroup
	text    string // the script
	sha     string

	// offset is Redis's clock minus ours, µs, learned from each answer.
	offset atomic.Int64
	// current caches the last period asked for: nearly all calls of a month
	// ask for the same.
	current atomic.Pointer[cachedPeriod]
	calls   sync.Pool // of *call
}

type cachedPeriod struct {
	calendar period.Calendar
	bounds   period.Bounds
}

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
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Breaker.Silence <= 0 {
		o.Breaker.Silence = o.Timeout
	}
	if o.Breaker.Now == nil {
		o.Breaker.Now = o.Now
	}
	s := &Store{
		client: client, prefix: o.KeyPrefix, timeout: o.Timeout, now: o.Now,
		breaker: breaker.New(o.Breaker),
		calls:   sync.Pool{New: func() any { return new(call) }},
	}
	s.useScript(script.Decide)
	return s, nil
}

func (s *Store) useScript(text string) {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	s.text, s.sha = text, hex.EncodeToString(sum[:])
}

// Available reports whether calls are tried: false while the breaker is open.
func (s *Store) Available() bool { return s.breaker.Closed() }

// Close waits for a probe under way. No Decide may run or follow.
func (s *Store) Close() error {
	s.probes.Wait()
	return nil
}

// Decide implements limit.Store. Errors are limit.ErrUnavailable,
// limit.ErrCounterBroken, ctx's own where it was done before the call, or that
// of limit.Counter.Check. A call once begun does not end with ctx: the charge
// may have been made, and its answer is wanted.
func (s *Store) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	if err := ctx.Err(); err != nil {
		return limit.Decision{}, err
	}
	for i := range counters {
		if err := counters[i].Check(); err != nil {
			return limit.Decision{}, err
		}
	}
	now := s.redisNow()
	if !needsRedis(counters) {
		return limit.Decision{Allowed: true, Now: now, States: freeStates(counters)}, nil
	}
	ok, probe := s.breaker.Allow()
	if probe {
		s.probe(context.WithoutCancel(ctx))
	}
	if !ok {
		return limit.Decision{}, fmt.Errorf("decide: breaker is open: %w", limit.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	return s.decide(ctx, counters, now)
}

func (s *Store) decide(ctx context.Context, counters []limit.Counter, now time.Time) (limit.Decision, error) {
	c := s.calls.Get().(*call)
	defer func() {
		c.clear()
		s.calls.Put(c)
	}()
	for try := 0; ; try++ {
		c.build(s, counters, now)
		reply, err := s.run(ctx, c)
		if err != nil {
			return limit.Decision{}, err
		}
		d, err := c.decision(counters, reply)
		if !errors.Is(err, errWrongPeriod) {
			if err == nil {
				s.learn(d.Now)
			}
			return d, err
		}
		// Nothing was charged; Redis said where it is in time.
		now = d.Now
		s.learn(now)
		if try > 0 {
			return limit.Decision{}, fmt.Errorf("decide: period wrong twice at %s: %w", now, limit.ErrUnavailable)
		}
	}
}

// redisNow guesses Redis's clock from ours.
func (s *Store) redisNow() time.Time {
	return time.UnixMicro(s.now().UnixMicro() + s.offset.Load()).UTC()
}

func (s *Store) learn(redisNow time.Time) {
	s.offset.Store(redisNow.UnixMicro() - s.now().UnixMicro())
}

func (s *Store) periodAt(c period.Calendar, t time.Time) period.Bounds {
	if p := s.current.Load(); p != nil && p.calendar == c && p.bounds.Contains(t) {
		return p.bounds
	}
	b := c.At(t)
	s.current.Store(&cachedPeriod{calendar: c, bounds: b})
	return b
}

// probe asks Redis in the background, so that no request waits for an answer
// that is not to be expected. The store owns the goroutine: Close waits for it.
func (s *Store) probe(ctx context.Context) {
	s.probes.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		err := s.client.Ping(ctx).Err()
		s.breaker.Probed(err == nil || isReply(err))
	})
}
