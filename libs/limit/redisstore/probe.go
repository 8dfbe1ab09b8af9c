package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeEvery is how often it is looked whether a probe is due.
const probeEvery = 20 * time.Millisecond

// probeUntilClosed asks the server in the background while its breaker is open,
// so that no request waits for an answer that is not to be expected, and the
// first one after an outage finds it there, however long nobody came.
func (l *lanes) probeUntilClosed() {
	l.s.running.Go(func() {
		ticker := time.NewTicker(probeEvery)
		defer ticker.Stop()
		for !l.breaker.Closed() {
			select {
			case <-l.s.closing:
				return
			case <-ticker.C:
			}
			if _, probe := l.breaker.Allow(); !probe {
				continue
			}
			began := l.s.now()
			err := l.ping()
			l.breaker.Probed(began, err == nil || isReply(err))
			if err != nil && !l.s.servers.lookAgain(l, err) {
				return
			}
		}
	})
}

func (l *lanes) ping() error {
	ctx, cancel := context.WithTimeout(l.s.background, l.s.o.CallTimeout)
	defer cancel()
	if l.server != nil {
		return l.server.Ping(ctx).Err()
	}
	return l.s.client.Ping(ctx).Err()
}

// lookAgain has the cluster's masters looked up again after a probe of one
// failed: another may have taken its slots. It reports whether that one is
// still a server of the cluster.
func (v *servers) lookAgain(l *lanes, err error) bool {
	if v.cluster == nil {
		return true
	}
	v.cluster.ReloadState(v.s.background)
	if !errors.Is(err, redis.ErrClosed) {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for addr, known := range v.byAddr {
		if known == l {
			delete(v.byAddr, addr)
			l.close()
		}
	}
	return false
}

// available reports whether no breaker is open.
func (v *servers) available() bool {
	if !v.only.breaker.Closed() {
		return false
	}
	if v.cluster == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.byAddr {
		if !l.breaker.Closed() {
			return false
		}
	}
	return true
}
