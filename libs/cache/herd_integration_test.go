//go:build integration

package cache_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// With 100 processes reading meanwhile, 1,000 invalidations in a second are no more loads than that, one at a time.
func TestReadersUnderInvalidationsMakeNoHerd(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	var src source
	var nodes []*cache.Cache[string]
	const processes, invalidations = 100, 1000
	for range processes {
		o := quick(client(t, addr))
		o.Prefix, o.Load = prefix, src.load
		nodes = append(nodes, listening(t, running(t, o), o))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reading sync.WaitGroup
	var reads atomic.Int64
	for _, c := range nodes {
		reading.Go(func() {
			pace := time.NewTicker(50 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				get(t, c, "k")
				reads.Add(1)
				<-pace.C
			}
		})
	}
	every := time.NewTicker(time.Second / invalidations)
	defer every.Stop()
	for i := range invalidations {
		<-every.C
		if err := nodes[i%processes].Invalidate(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	}
	cancel()
	reading.Wait()
	if n := src.loads.Load(); n > invalidations+1 || src.most.Load() > 1 {
		t.Errorf("%d loads, %d at once", n, src.most.Load())
	}
	if reads.Load() < 5*processes {
		t.Errorf("only %d reads", reads.Load())
	}
}
