package main

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
)

func otterExpiring(_ context.Context, n node, load loader) (reader, error) {
	return otterReader(n, load, 0)
}

func otterRefreshing(_ context.Context, n node, load loader) (reader, error) {
	return otterReader(n, load, n.TTL*3/4)
}

// otterReader is a cache of this process; refresh is the age at which a value is loaded anew behind its reader's back,
// 0 is never.
func otterReader(n node, load loader, refresh time.Duration) (reader, error) {
	o := &otter.Options[string, string]{MaximumSize: 500, ExpiryCalculator: otter.ExpiryWriting[string, string](n.TTL)}
	if refresh > 0 {
		o.RefreshCalculator = otter.RefreshWriting[string, string](refresh)
	}
	c, err := otter.New(o)
	if err != nil {
		return nil, err
	}
	ask := otter.LoaderFunc[string, string](func(ctx context.Context, _ string) (string, error) { return load(ctx) })
	return func(ctx context.Context) (string, error) { return c.Get(ctx, key, ask) }, nil
}
