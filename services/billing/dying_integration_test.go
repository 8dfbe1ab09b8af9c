//go:build integration

package billing

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cutter closes the connection before the n-th statement of a transaction, as a
// process would that dies there.
type cutter struct {
	n    int64
	seen atomic.Int64
	died atomic.Bool
}

func (c *cutter) TraceQueryStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if c.seen.Add(1) != c.n {
		return ctx
	}
	c.died.Store(true)
	_ = conn.PgConn().Conn().Close() // what dies says no goodbye
	return ctx
}

func (*cutter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// dyingPass has a job of its own pass over the customers and die at a statement;
// false where it came to its end before.
func (s *stand) dyingPass(t *testing.T, step int) bool {
	t.Helper()
	c := &cutter{n: int64(step)}
	cfg := s.pool.Config()
	cfg.MaxConns = 1
	cfg.ConnConfig.Tracer = c
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	dying, err := New(s.cfg, Deps{Pool: pool, Now: s.deps.Now})
	if err != nil {
		t.Fatal(err)
	}
	// Whether the pass says so or only logs it depends on where it died.
	_ = dying.Pass(t.Context())
	return c.died.Load()
}
