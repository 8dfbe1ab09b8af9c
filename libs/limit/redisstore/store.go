package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Options say how the store behaves; the zero value is usable.
type Options struct {
	// KeyPrefix begins every key; it must not hold { or }.
	KeyPrefix string
	// Timeout bounds a call; default 50 ms.
	Timeout time.Duration
	// Now is the local clock; nil is time.Now.
	Now func() time.Time
}

// Store decides on Redis. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	opts   Options
}

var _ limit.Store = (*Store)(nil)

// New returns a store on a client, which stays the caller's to close. The
// client's options should come through Configure.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	return &Store{client: client, opts: o}, nil
}

// Configure sets what the store expects of a client on o.
func Configure(o *redis.UniversalOptions, timeout time.Duration) {}

// Decide implements limit.Store.
func (s *Store) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	return limit.Decision{}, limit.ErrUnavailable
}

// Available reports whether calls are let through: false while the breaker is open.
func (s *Store) Available() bool { return true }

// Close waits for a probe in flight. It does not close the client.
func (s *Store) Close() error { return nil }
