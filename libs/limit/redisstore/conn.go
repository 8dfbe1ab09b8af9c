package redisstore

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

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
