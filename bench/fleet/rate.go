package fleet

import (
	"context"
	"sync"
	"time"
)

// tick is how often calls fall due, several at once: a timer a call would cost more than the call.
const tick = time.Millisecond

// AtRate calls do perSecond times a second for so long or until ctx ends, whether earlier calls have returned or not,
// and returns when all have. due is when a call should have begun.
func AtRate(ctx context.Context, perSecond float64, long time.Duration, do func(due time.Time)) {
	var wait sync.WaitGroup
	begin, owed := time.Now(), 0.0
	for due := begin; due.Sub(begin) < long && ctx.Err() == nil; due = due.Add(tick) {
		<-time.After(time.Until(due))
		for owed += perSecond * tick.Seconds(); owed >= 1; owed-- {
			wait.Go(func() { do(due) })
		}
	}
	wait.Wait()
}
