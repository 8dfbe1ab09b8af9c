package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// routeFor is how long a slot's server is believed without asking the client.
const routeFor = time.Second

func (v *servers) start(s *Store) {
	v.s = s
	if c, ok := s.client.(*redis.ClusterClient); ok {
		v.cluster, v.byAddr = c, map[string]*lanes{}
		v.only = newLanes(s, nil)
		return
	}
	v.only = newLanes(s, s.client.(*redis.Client)) // New has checked that
}

func newLanes(s *Store, server *redis.Client) *lanes {
	l := &lanes{s: s, server: server, waiting: newQueue(), began: map[*lane]time.Time{}}
	if server != nil {
		l.bound.Store(bind(server, s.o.Proxied))
	}
	o := s.o.Breaker
	o.OnOpen = l.probeUntilClosed
	l.breaker = breaker.New(o)
	return l
}

// slot is where a counter's key lies; its prefix has no tag, so it moves none.
func (v *servers) slot(key string) int {
	if v.cluster == nil {
		return 0
	}
	return epoch.SlotOf(key)
}

// lanes are those to the server of the part's slot, as far as is known: the
// cluster client sends a call on where it is elsewhere.
func (v *servers) lanes(ctx context.Context, p *part) *lanes {
	if v.cluster == nil {
		return v.only
	}
	now := v.s.now().UnixNano()
	if r := v.routes[p.slot].Load(); r != nil && now < r.until {
		return r.to
	}
	return v.route(ctx, p.slot, p.keys[0], now)
}

func (v *servers) route(ctx context.Context, slot int, key string, now int64) *lanes {
	to := v.only
	ctx, cancel := context.WithTimeout(ctx, v.s.o.Budget)
	defer cancel()
	if node, err := v.cluster.MasterForKey(ctx, key); err == nil {
		v.mu.Lock()
		addr := node.Options().Addr
		// A server that left the cluster and is back has a new client.
		if to = v.byAddr[addr]; to == nil || to.server != node {
			if to != nil {
				to.close()
			}
			to = newLanes(v.s, node)
			v.byAddr[addr] = to
		}
		v.mu.Unlock()
	}
	v.routes[slot].Store(&route{to: to, until: now + int64(routeFor)})
	return to
}

// seen takes note of which process was found at an address, and connects to it
// before a request waits for that.
func (v *servers) seen(ctx context.Context, p *epoch.Process, runID string) {
	l := v.only
	if v.cluster != nil {
		v.mu.Lock()
		l = v.byAddr[p.Addr]
		v.mu.Unlock()
	}
	if l != nil {
		l.leads(runID)
		_, _, _ = l.connected(ctx) // a call tries again, and tells
	}
}

// epochKey is that of the quotas of a slot.
func (v *servers) epochKey(slot int) string {
	if v.cluster == nil {
		return v.s.epochKey
	}
	return epoch.Key(v.s.o.KeyPrefix, true, slot)
}

func (v *servers) close() {
	for _, l := range v.all() {
		if l.server != nil {
			l.close()
		}
	}
}
