//go:build integration

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// fuse cuts a control plane off from its servers right after its n-th step: a
// statement (COMMIT is one) or a call of Redis. The step has happened, and
// nothing that it does after that does, as if the process were killed there.
type fuse struct{ left atomic.Int64 }

var errKilled = errors.New("killed")

func (f *fuse) dead() bool { return f.left.Load() <= 0 }

// TraceQueryStart implements pgx.QueryTracer.
func (f *fuse) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if !f.dead() {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (f *fuse) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { f.left.Add(-1) }

// DialHook implements redis.Hook.
func (f *fuse) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (f *fuse) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "get", "set", "mget", "del": // and not the client's own, of a new connection
			if f.dead() {
				cmd.SetErr(errKilled)
				return errKilled
			}
			defer f.left.Add(-1)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f *fuse) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A top-up that is killed after any of its steps is written once or not at all,
// and its repetition, on another control plane, makes it once.
func TestTopUpKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	f := new(fuse)
	client := redis.NewClient(s.redis.Options())
	client.AddHook(f)
	t.Cleanup(func() { _ = client.Close() })
	doomed := s.service(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = f }, client)
	steps, written := 0, 0
	for {
		steps++
		key := fmt.Sprint("order-", steps)
		before := s.count(t, `SELECT count(*) FROM grants`)
		f.left.Store(int64(steps))
		got := topUpWith(key, `{"amount":5}`).do(t, doomed)
		if !f.dead() {
			if got.Code != 201 {
				t.Fatalf("unharmed it answers %d %s", got.Code, got.Body)
			}
			break
		}
		switch n := s.count(t, `SELECT count(*) FROM grants`) - before; n {
		case 0:
		case 1:
			written++
		default:
			t.Fatalf("step %d: %d grants", steps, n)
		}
		// Postgres takes a moment to hear that the dead one's connection is gone.
		servertest.Eventually(t, 10*time.Second, "the dead one's locks to go", func() bool {
			got = topUpWith(key, `{"amount":5}`).do(t, s)
			return got.Code != 409
		})
		if got.Code != 201 {
			t.Fatalf("killed after step %d, its repetition answers %d %s", steps, got.Code, got.Body)
		}
		s.holds(t, steps, 5*int64(steps))
		s.topUp(t, 201, key, `{"amount":5}`)
		if t.Failed() {
			t.Fatalf("after step %d", steps)
		}
	}
	s.holds(t, steps, 5*int64(steps))
	t.Logf("%d steps, %d of them after the commit", steps-1, written)
	if steps < 15 || written == 0 || written == steps-1 {
		t.Errorf("%d steps, %d after the commit: they are not what this test means", steps, written)
	}
}
