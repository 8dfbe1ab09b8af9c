package sampledlog

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Log writes at most one line a second. It is safe for concurrent use.
type Log struct {
	log     *slog.Logger
	now     func() time.Time
	quiet   atomic.Int64 // no line is written before then, µs since the epoch
	omitted atomic.Int64
}

// New returns a Log that writes to log and uses the clock now; both
// are required.
func New(log *slog.Logger, now func() time.Time) *Log {
	return &Log{log: log, now: now}
}

// Say logs a message with its attributes, as slog does, and with the number of
// those left out before, "omitted"; or leaves it out.
func (l *Log) Say(level slog.Level, message string, args ...any) {
	now := l.now().UnixMicro()
	until := l.quiet.Load()
	if now < until || !l.quiet.CompareAndSwap(until, now+time.Second.Microseconds()) {
		l.omitted.Add(1)
		return
	}
	l.log.Log(context.Background(), level, message, append(args, "omitted", l.omitted.Swap(0))...)
}
