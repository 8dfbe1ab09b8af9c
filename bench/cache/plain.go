package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

// key is the shop window's.
const key = "window"

// shared is a value in Redis with an end, as programs keep it that think of no stampede.
type shared struct {
	client *redis.Client
	n      node
}

func newShared(n node) shared {
	return shared{client: redis.NewClient(&redis.Options{Addr: n.Redis}), n: n}
}

// get is redis.Nil where there is none.
func (s shared) get(ctx context.Context) (string, error) {
	return s.client.Get(ctx, key).Result()
}

func (s shared) loaded(ctx context.Context, load loader) (string, error) {
	v, err := load(ctx)
	if err != nil {
		return "", err
	}
	return v, s.client.Set(ctx, key, v, s.n.TTL).Err()
}

func unprotected(_ context.Context, n node, load loader) (reader, error) {
	s := newShared(n)
	return func(ctx context.Context) (string, error) {
		v, err := s.get(ctx)
		if errors.Is(err, redis.Nil) {
			return s.loaded(ctx, load)
		}
		return v, err
	}, nil
}

func singleFlighted(_ context.Context, n node, load loader) (reader, error) {
	s := newShared(n)
	var group singleflight.Group
	return func(ctx context.Context) (string, error) {
		v, err := s.get(ctx)
		if !errors.Is(err, redis.Nil) {
			return v, err
		}
		joined, err, _ := group.Do(key, func() (any, error) { return s.loaded(ctx, load) })
		if err != nil {
			return "", err
		}
		return joined.(string), nil
	}, nil
}
