package settle

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// complaints logs what goes wrong for every request at once where the disk takes
// nothing, and then would fill it: at most one line a second, with the number
// that were left out.
type complaints struct {
	log     *slog.Logger
	now     func() time.Time
	quiet   atomic.Int64 // until then nothing is logged, µs since the epoch
	omitted atomic.Int64
}

func (c *complaints) say(message string, args ...any) {
	now := c.now().UnixMicro()
	until := c.quiet.Load()
	if now < until || !c.quiet.CompareAndSwap(until, now+time.Second.Microseconds()) {
		c.omitted.Add(1)
		return
	}
	c.log.Error(message, append(args, "omitted", c.omitted.Swap(0))...)
}
