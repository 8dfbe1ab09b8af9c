package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"
)

func aside(_ context.Context, n node, load loader) (reader, error) {
	c, err := rueidisaside.NewClient(rueidisaside.ClientOption{ClientOption: rueidis.ClientOption{InitAddress: []string{n.Redis}}})
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context, _ string) (string, error) { return load(ctx) }
	return func(ctx context.Context) (string, error) { return c.Get(ctx, n.TTL, key, ask) }, nil
}
