package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// errOtherProcess refuses a connection. It wraps nothing: go-redis unwraps what
// OnConnect returns.
var errOtherProcess = errors.New("redis is another process than before")

// bind returns a client of its own with the options of one that leads to a
// server. It does not connect.
func bind(server *redis.Client, proxied bool) *bound {
	b := new(bound)
	o := *server.Options()
	if proxied {
		b.runID.Store(new(string))
		b.client = redis.NewClient(&o)
		return b
	}
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return b.identify(ctx, conn)
	}
	o.MinIdleConns, o.MaxRetries = 0, -1
	b.client = redis.NewClient(&o)
	return b
}

func (b *bound) identify(ctx context.Context, conn *redis.Conn) error {
	id, err := epoch.RunIDOf(ctx, conn)
	if err != nil {
		return err
	}
	if !b.runID.CompareAndSwap(nil, &id) && *b.runID.Load() != id {
		return errOtherProcess
	}
	return nil
}

// process is the run id of the process that all connections lead to. Where none
// has been made yet it connects, and has the process know the script. Empty where
// Redis does not tell.
func (b *bound) process(ctx context.Context, script string) (string, error) {
	if id := b.runID.Load(); id != nil {
		return *id, nil
	}
	if err := b.client.ScriptLoad(ctx, script).Err(); err != nil && !isReply(err) {
		return "", err
	}
	if id := b.runID.Load(); id != nil {
		return *id, nil
	}
	return "", nil
}

// rebind has calls go to the process that is there now. Calls that are under way
// to the one before lose their answers, if it still is there: what became of them
// is asked for.
func (l *lanes) rebind(old *bound) {
	next := bind(l.server, l.s.o.Proxied)
	if !l.bound.CompareAndSwap(old, next) {
		_ = next.client.Close() // somebody else was faster
		return
	}
	_ = old.client.Close()
}

// leads sees to it that calls go to the process that was seen at the server.
func (l *lanes) leads(runID string) {
	b := l.bound.Load()
	if id := b.runID.Load(); id != nil && *id != runID && runID != "" && !l.s.o.Proxied {
		l.rebind(b)
	}
}

// close ends the connections; nothing is sent any more.
func (l *lanes) close() { _ = l.bound.Load().client.Close() }

// What calls name that may charge no quota anywhere, and behind a proxy those that
// may charge under any epoch of the process that runs them.
const (
	noEpoch  = "-"
	anyEpoch = "*"
)

// epochFor is the epoch that a call to a slot names when it is sent to a process:
// the one this store has reported to, if it is that process's; before Run has
// looked, any of that process.
func (v *servers) epochFor(slot int, runID string) string {
	named := v.epochs[slot].Load()
	switch {
	case v.s.o.Proxied && named == nil:
		return anyEpoch
	case v.s.o.Proxied:
		return *named
	case runID == "":
		return noEpoch
	case named == nil:
		return runID
	case epoch.RunID(*named) == runID:
		return *named
	}
	return noEpoch
}

// redirected are the answers by which a Cluster says that a slot is elsewhere, or
// on its way.
func redirected(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}
