//go:build integration

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// reservation is what a gateway says of one.
type reservation struct {
	State     string
	Committed int64
}

const reservations = "/.sluice/v1/reservations"

// A gateway is killed while it makes and ends reservations: another one ends
// those that are left, and what was used is what was committed, also by the
// checkpoints that are folded out of events.
func TestReservationsEndThoughTheirGatewayDies(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.process("rest", "controlplane,relay,keeper", map[string]any{"keeper": map[string]any{"checkpointEvery": "500ms"}}).start().awaitReady()
	s.service()
	s.mustREST("POST", "/v1/rules", nil, quota("tokens", "/svc/chat", 1_000_000), http.StatusCreated)
	dies, stays := s.gateway("gw-dies"), s.gateway("gw-stays")
	for _, g := range []*gate{dies, stays} {
		g.start().awaitReady()
		s.awaitEqual(g)
	}
	var mu sync.Mutex
	var ids []string
	var done atomic.Int64
	enough := make(chan struct{})
	var clients sync.WaitGroup
	for worker := range 6 {
		clients.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", worker, i)
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
				got := dies.reserve(id, 5, "2s")
				if got.code == 0 {
					return // the gateway is dead
				}
				if i%4 != 3 { // who forgets it has it expire
					send("POST", "http://"+dies.addr+reservations+"/"+id+"/commit", as("acme"), map[string]any{"cost": i % 8})
				}
				if done.Add(1) == 120 {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(60 * time.Second):
		t.Fatal("reservations come to no end")
	}
	dies.kill()
	clients.Wait()

	var committed int64
	states := map[string]int{}
	for _, id := range ids {
		var r reservation
		servertest.Eventually(t, 60*time.Second, "the end of "+id, func() bool {
			got := stays.hit(reservations+"/"+id, as("acme"))
			if got.code == http.StatusNotFound {
				r = reservation{State: "none"}
				return true
			}
			r = decode[reservation](t, got.body)
			return got.code == http.StatusOK && r.State != "reserved"
		})
		states[r.State]++
		committed += r.Committed
	}
	if states["committed"] == 0 || states["expired"] == 0 {
		t.Errorf("they came to %v", states)
	}
	dies.start().awaitReady() // ships what it had told
	var used int64
	servertest.Eventually(t, 60*time.Second, "checkpoints to say what was committed", func() bool {
		s.database(func(ctx context.Context, db *pgx.Conn) error {
			return db.QueryRow(ctx, "SELECT coalesce(sum(consumed - refunded), 0) FROM checkpoints WHERE tenant = 'acme' AND metric = 'tokens'").Scan(&used)
		})
		return used == committed
	})
	got := stays.reserve("last", 1, "2s")
	if want := fmt.Sprintf(`"tokens";r=%d`, 1_000_000-committed-1); got.code != http.StatusCreated || len(got.header.Get("RateLimit")) < len(want) || got.header.Get("RateLimit")[:len(want)] != want {
		t.Errorf("%d, RateLimit %q, want %s…: %v", got.code, got.header.Get("RateLimit"), want, states)
	}
}

func (g *gate) reserve(id string, cost int, ttl string) answer {
	return send("POST", "http://"+g.addr+reservations, as("acme"), map[string]any{"id": id, "path": "/svc/chat", "method": "GET", "cost": cost, "ttl": ttl})
}
