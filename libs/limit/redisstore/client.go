package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Configure sets on o what the store expects of a client: connections that
// outlast a decision's budget, so that late answers are read and a slow moment
// does not become a storm of dialling, that are read once more when their time
// is up, and one attempt to dial a call. It
// leaves addresses, credentials, TLS and pool sizes alone. timeout is how long
// a connection waits for an answer, at least DefaultCallTimeout.
func Configure(o *redis.UniversalOptions, timeout time.Duration) {
	timeout = max(timeout, DefaultCallTimeout)
	o.ContextTimeoutEnabled = true
	o.DialTimeout = timeout
	o.ReadTimeout = timeout
	o.WriteTimeout = timeout
	o.PoolTimeout = timeout
	o.DialerRetries = 1
	o.Dialer = lookTwice(o)
	// Neither CLIENT SETINFO nor a hand-over protocol in a connection's set-up:
	// each is a round trip that a request may be waiting for.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

var errNoDeadlines = errors.New("redis client ignores deadlines: its options need ContextTimeoutEnabled, see redisstore.Configure")

// checkClient refuses clients on which a silent Redis would hold a request for
// seconds. Retries need no check: a charge opts out of them itself.
func checkClient(c redis.UniversalClient) error {
	switch c := c.(type) {
	case *redis.Client:
		if !c.Options().ContextTimeoutEnabled {
			return errNoDeadlines
		}
	case *redis.ClusterClient:
		if !c.Options().ContextTimeoutEnabled {
			return errNoDeadlines
		}
	default:
		return fmt.Errorf("redis client is a %T; want one of one Redis, of Sentinels or of a Cluster", c)
	}
	return nil
}

// lastLook is how much longer a connection is read, or written to, when its
// time is up. Where that is noticed late this process stood still, perhaps before
// it could send: then it is read for as long as it was late, up to lateLook.
const (
	lastLook = 5 * time.Millisecond
	lateLook = 100 * time.Millisecond
)

// lookTwice returns a dialer of connections whose time-outs are only believed
// after a second look. Where this process was stopped for longer than a
// connection's time-out, its timers fire before its poller is asked, and a call
// would end without the answer that is lying there, or without being sent.
func lookTwice(o *redis.UniversalOptions) func(context.Context, string, string) (net.Conn, error) {
	dial := o.Dialer
	if dial == nil {
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})(ctx, network, addr)
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if raw, ok := c.(syscall.Conn); ok {
			return struct {
				twice
				syscall.Conn // go-redis looks there whether the other side has closed it
			}{twice{c, new(atomic.Int64)}, raw}, nil
		}
		return twice{c, new(atomic.Int64)}, nil
	}
}

// twice looks twice.
type twice struct {
	net.Conn
	readUntil *atomic.Int64 // ns since the epoch; 0: for ever
}

func (c twice) SetDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetDeadline(t)
}

func (c twice) SetReadDeadline(t time.Time) error {
	c.note(t)
	return c.Conn.SetReadDeadline(t)
}

func (c twice) note(readUntil time.Time) {
	if readUntil.IsZero() {
		c.readUntil.Store(0)
		return
	}
	c.readUntil.Store(readUntil.UnixNano())
}

func (c twice) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 || !isTimeout(err) {
		return n, err
	}
	now, look := time.Now(), lastLook
	if until := c.readUntil.Load(); until > 0 {
		look = min(max(look, now.Sub(time.Unix(0, until))), lateLook)
	}
	if c.Conn.SetReadDeadline(now.Add(look)) != nil {
		return n, err
	}
	return c.Conn.Read(b)
}

func (c twice) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n == len(b) || !isTimeout(err) || c.SetWriteDeadline(time.Now().Add(lastLook)) != nil {
		return n, err
	}
	more, err := c.Conn.Write(b[n:])
	return n + more, err
}
