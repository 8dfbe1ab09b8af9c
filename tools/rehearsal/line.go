package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// line is a node's way to Redis, which can be cut and made deaf. It is safe for concurrent use.
type line struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	deaf atomic.Bool
	// played: it was cut or made deaf at some time.
	played atomic.Bool

	mu    sync.Mutex
	down  bool
	conns map[*lineConn]bool
}

// newLine makes a line of the options' own way to dial, TLS included.
func newLine(o *redis.UniversalOptions) *line {
	l := &line{conns: map[*lineConn]bool{}, dial: o.Dialer}
	if l.dial == nil {
		l.dial = redis.NewDialer(o.Simple())
	}
	return l
}

var errCut = errors.New("the line is cut")

func (l *line) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down {
		return nil, errCut
	}
	plain, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &lineConn{Conn: plain, line: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down { // cut meanwhile
		_ = plain.Close()
		return nil, errCut
	}
	l.conns[c] = true
	return c, nil
}

// cut closes every connection and lets none be made.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	l.played.Store(true)
	for c := range l.conns {
		_ = c.Conn.Close() // whoever reads it gets the error
		delete(l.conns, c)
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// deafen lets subscriptions hear nothing any more, not even that their connection is gone.
func (l *line) deafen() {
	l.played.Store(true)
	l.deaf.Store(true)
}

// lineConn is one connection of a line.
type lineConn struct {
	net.Conn

	line *line
	// subscribes: it was used to subscribe to something, and does nothing else.
	subscribes atomic.Bool
}

// Write implements io.Writer.
func (c *lineConn) Write(b []byte) (int, error) {
	if !c.subscribes.Load() && bytes.Contains(b, []byte("\r\nsubscribe\r\n")) {
		c.subscribes.Store(true)
	}
	return c.Conn.Write(b)
}

// Read implements io.Reader.
func (c *lineConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.subscribes.Load() || !c.line.deaf.Load() {
			return n, err
		}
	}
}

// Close implements io.Closer.
func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}
