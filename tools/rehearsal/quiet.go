package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// ClientLog is for redis.SetLogger of a program that rehearses. The client tells of each connection that it could not
// make, by the hundred where a scenario takes Redis away: what was played is left out, and other errors are warnings.
type ClientLog struct{ Log *slog.Logger }

// Printf is the client library's logging interface.
func (l ClientLog) Printf(ctx context.Context, format string, args ...any) {
	level := slog.LevelDebug
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			if errors.Is(err, errCut) {
				return
			}
			level = slog.LevelWarn
		}
	}
	if l.Log.Enabled(ctx, level) {
		l.Log.Log(ctx, level, fmt.Sprintf(format, args...), "client", "redis")
	}
}

// unplayed leaves out what a node says of Redis once a fault was played on its line: it finds Redis away a little longer
// than that lasts. Trouble of Redis's own in that run is found when the next one begins, or its keys are deleted.
type unplayed struct {
	slog.Handler

	line *line
}

// Handle implements slog.Handler.
func (u unplayed) Handle(ctx context.Context, r slog.Record) error {
	if u.line.played.Load() {
		return nil
	}
	return u.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (u unplayed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return unplayed{u.Handler.WithAttrs(attrs), u.line}
}

// WithGroup implements slog.Handler.
func (u unplayed) WithGroup(name string) slog.Handler {
	return unplayed{u.Handler.WithGroup(name), u.line}
}
