package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// witnessChannel, with a process's run id behind it, is the channel whose
// subscribers show decide.lua that it runs in that process.
const witnessChannel = "sluice:run:"

// witnessAgain is how long after one could not be set up another is tried.
const witnessAgain = 10 * time.Second

// witness is a subscription to the channel named by the run id of a process, on
// the very connection that the run id was read from. Redis keeps subscriptions
// in its memory only, so where the channel has a subscriber, no other process
// can be running the script: it says so for a fifth of what INFO costs. Without
// a witness the script asks INFO, and is right all the same.
//
// It must never be on another process than it names. So it has a client of its
// own, which dials once and never again; and that client's connection must be
// one that the process itself sees end here, for what speaks the protocol in
// between could carry a subscription over to another process.
type witness struct {
	runID  string // which it is of, or could not be of
	client *redis.Client
	retry  time.Time // while there is no client
}

var (
	errWitnessGone = errors.New("the connection of a witness is not dialled again")
	errNotDirect   = errors.New("redis sees another address than this end's")
	runIDOf        = regexp.MustCompile(`run_id:([0-9a-f]{40})\r?\n`)
	addrOf         = regexp.MustCompile(` addr=(\S+) `)
)

// attest sees to it that a process has a witness of this store's.
func (s *Store) attest(ctx context.Context, a *attendance, p *process, runID string) {
	w := a.witnesses[p.addr]
	if w == nil {
		w = new(witness)
		a.witnesses[p.addr] = w
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	defer cancel()
	if w.client != nil && (w.runID != runID || w.client.Do(ctx, "ping").Err() != nil) {
		w.close() // a process that is gone, or a connection
	}
	if w.client != nil || w.runID == runID && s.now().Before(w.retry) {
		return
	}
	w.runID, w.retry = runID, s.now().Add(witnessAgain)
	if node := s.servers.node(ctx, p, s.o.KeyPrefix); node != nil {
		// Where it cannot be, Redis pays more and nothing else changes.
		w.client, _ = subscribe(ctx, node, runID)
	}
}

// close ends the subscription with its connection.
func (w *witness) close() {
	if w.client != nil {
		_ = w.client.Close()
	}
	*w = witness{}
}

// node is the client of one server; nil where it is not known.
func (v *servers) node(ctx context.Context, p *process, prefix string) *redis.Client {
	if v.cluster != nil {
		node, err := v.cluster.MasterForKey(ctx, besides(prefix, true, p.home(), markerKey))
		if err != nil {
			return nil
		}
		return node
	}
	node, _ := v.s.client.(*redis.Client)
	return node
}

// subscribe returns a client whose one connection is a witness of a process.
func subscribe(ctx context.Context, node *redis.Client, runID string) (*redis.Client, error) {
	o := *node.Options()
	local := new(atomic.Pointer[net.Addr])
	o.Dialer = dialOnce(o.Dialer, local)
	// Answers of RESP2 are what the connection's other commands expect, also once
	// it is subscribed.
	o.Protocol, o.PushNotificationProcessor = 2, nil
	o.PoolSize, o.MinIdleConns, o.MaxActiveConns = 1, 0, 1
	o.MaxRetries, o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1, 0
	client := redis.NewClient(&o)
	err := attested(ctx, client, runID, local)
	if err == nil {
		err = client.Do(ctx, "subscribe", witnessChannel+runID).Err()
	}
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("subscribe to the run id: %w", err)
	}
	return client, nil
}

// attested asks the process at the other end who it is, and whom it sees here.
func attested(ctx context.Context, client *redis.Client, runID string, local *atomic.Pointer[net.Addr]) error {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if id := runIDOf.FindStringSubmatch(info); id == nil || id[1] != runID {
		return errMoved
	}
	seen, err := client.Do(ctx, "client", "info").Text()
	if err != nil {
		return err
	}
	addr := addrOf.FindStringSubmatch(seen)
	if at := local.Load(); addr == nil || at == nil || !sameAddress(addr[1], (*at).String()) {
		return errNotDirect
	}
	return nil
}

func sameAddress(a, b string) bool {
	x, err := netip.ParseAddrPort(a)
	if err != nil {
		return false
	}
	y, err := netip.ParseAddrPort(strings.TrimSpace(b))
	return err == nil && x.Port() == y.Port() && x.Addr().Unmap() == y.Addr().Unmap().WithZone("")
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialOnce dials once, and notes this end's address.
func dialOnce(dial dialer, local *atomic.Pointer[net.Addr]) dialer {
	var dialled atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errWitnessGone
		}
		c, err := dial(ctx, network, addr)
		if err == nil {
			at := c.LocalAddr()
			local.Store(&at)
		}
		return c, err
	}
}
