package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/viccon/sturdyc"
)

// sturdyRetry is when it begins a second refresh if the first has not ended: its example's, and longer than a load.
const sturdyRetry = 5 * time.Second

func sturdy(_ context.Context, n node, load loader) (reader, error) {
	const capacity, shards, evictionPercentage = 10_000, 10, 10 // its README's
	storage := sturdyStorage{client: redis.NewClient(&redis.Options{Addr: n.Redis}), ttl: 2 * n.TTL}
	c := sturdyc.New[string](capacity, shards, 2*n.TTL, evictionPercentage,
		sturdyc.WithEarlyRefreshes(n.TTL/2, n.TTL*3/4, n.TTL, sturdyRetry),
		sturdyc.WithDistributedStorageEarlyRefreshes(storage, n.TTL/2),
	)
	return func(ctx context.Context) (string, error) {
		return c.GetOrFetch(ctx, key, sturdyc.FetchFn[string](load))
	}, nil
}

// sturdyStorage is sturdyc's store behind its memory. Its contract has no errors: what Redis does not answer is missing.
type sturdyStorage struct {
	client *redis.Client
	ttl    time.Duration
}

func (s sturdyStorage) Get(ctx context.Context, key string) ([]byte, bool) {
	v, err := s.client.Get(ctx, key).Bytes()
	return v, err == nil
}

func (s sturdyStorage) Set(ctx context.Context, key string, value []byte) {
	_ = s.client.Set(ctx, key, value, s.ttl).Err()
}

func (s sturdyStorage) Delete(ctx context.Context, key string) { _ = s.client.Del(ctx, key).Err() }

func (s sturdyStorage) GetBatch(ctx context.Context, keys []string) map[string][]byte {
	found := make(map[string][]byte, len(keys))
	for _, key := range keys {
		if v, ok := s.Get(ctx, key); ok {
			found[key] = v
		}
	}
	return found
}

func (s sturdyStorage) SetBatch(ctx context.Context, records map[string][]byte) {
	for key, v := range records {
		s.Set(ctx, key, v)
	}
}

func (s sturdyStorage) DeleteBatch(ctx context.Context, keys []string) {
	_ = s.client.Del(ctx, keys...).Err()
}
