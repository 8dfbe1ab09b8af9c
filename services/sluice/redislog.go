package sluice

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog takes what the Redis client would print to standard error: it tells
// of each connection it cannot make, which the breaker tells of once.
type redisLog struct{ log *slog.Logger }

// Printf is the client library's logging interface.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
	}
}
