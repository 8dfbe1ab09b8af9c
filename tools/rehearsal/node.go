package rehearsal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// node plays one process: a Cache with connections of its own.
type node struct {
	cache  *cache.Cache[Value]
	client redis.UniversalClient
	line   *line
	dead   atomic.Bool
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// newNode starts a node; close ends it. Names of keys are their places in the plan.
func (r *run) newNode() (*node, error) {
	redisOptions := *r.plan.Redis
	cache.ConfigureRedis(&redisOptions, r.plan.RedisTimeout)
	n := &node{line: newLine(&redisOptions)}
	redisOptions.Dialer = n.line.connect
	n.client = redis.NewUniversalClient(&redisOptions)
	o := Options{TTL: time.Minute, Jitter: -1}
	r.plan.Configure(&o)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = slog.New(unplayed{o.Logger.Handler(), n.line})
	o.Family, o.Prefix, o.Redis, o.RedisTimeout = family, r.prefix, n.client, r.plan.RedisTimeout
	o.Codec, o.Now, o.Metrics, o.PhysicalTTL = valueCodec{}, nil, nil, 0
	o.Load = func(ctx context.Context, name string) (cache.Loaded[Value], error) { return r.loaded(ctx, n, name) }
	var err error
	if n.cache, err = cache.New(o); err != nil {
		return nil, errors.Join(err, n.client.Close())
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.ended.Go(func() { _ = n.cache.Run(ctx) }) // nil always
	return n, nil
}

// loaded is a load of a node's, with the key's own limits.
func (r *run) loaded(ctx context.Context, n *node, name string) (cache.Loaded[Value], error) {
	key, err := index(name)
	if err != nil {
		return cache.Loaded[Value]{}, err
	}
	if n.dead.Load() {
		// Until its Cache has ended it finds Redis away and would load without a lock; a killed process does nothing.
		return cache.Loaded[Value]{}, errDied
	}
	v, err := r.source.load(ctx, n, key)
	s := r.settings[key]
	none := func(d time.Duration) time.Duration {
		if d <= 0 {
			return -1
		}
		return d
	}
	// What was loaded together does not expire together, as with real TTLs.
	ttl := s.TTL - time.Duration(rand.Float64()*float64(s.TTL)/20) //nolint:gosec // spreads load, guards nothing
	return cache.Loaded[Value]{
		Value: v, TTL: ttl, StaleWhileRevalidate: none(s.StaleWhileRevalidate), StaleIfError: none(s.StaleIfError),
	}, err
}

func (n *node) read(ctx context.Context, key int) (answer, error) {
	r, err := n.cache.Fetch(ctx, name(key))
	return answer{version: r.Value.version, stale: r.Source == cache.Stale}, err
}

func (n *node) clear(ctx context.Context, key int) error { return n.cache.Clear(ctx, name(key)) }

// kill ends the node as kill -9 would: nothing of it reaches Redis any more.
func (n *node) kill() {
	n.dead.Store(true)
	n.line.cut()
	n.cancel()
}

func (n *node) close() {
	n.cancel()
	n.ended.Wait()
	_ = n.client.Close() // nothing is left to be said on it
}

const family = "copy"

func name(key int) string { return fmt.Sprint(key) }

func index(name string) (key int, err error) {
	_, err = fmt.Sscan(name, &key)
	return key, err
}

// valueCodec keeps a version and its padding.
type valueCodec struct{}

// Encode implements cache.Codec.
func (valueCodec) Encode(v Value) ([]byte, error) {
	return append(binary.BigEndian.AppendUint64(nil, uint64(v.version)), v.pad...), nil //nolint:gosec // counts up from 1
}

// Decode implements cache.Codec.
func (valueCodec) Decode(b []byte) (Value, error) {
	if len(b) < 8 {
		return Value{}, errors.New("short value")
	}
	return Value{version: int64(binary.BigEndian.Uint64(b)), pad: b[8:]}, nil //nolint:gosec // as it was written
}
