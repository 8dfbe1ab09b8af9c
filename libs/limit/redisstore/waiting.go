package redisstore

import (
	"context"
	"time"
)

// waiting is what is known of a decision that waits for its answer.
type waiting struct {
	started time.Time // when the decision began
	sent    time.Time // when its call was sent; zero while it queues
	// answered is when Redis last answered anybody within the budget; zero
	// where its last answer took longer.
	answered time.Time
	// stalled is for how long this process did not run since a time.
	stalled func(since time.Time) time.Duration
}

// until is when silence has lasted for a budget: from when the call was sent,
// or while it queues from when the decision began. Another one's answer shows
// that ours is still to come, and begins it anew, for longestQueue budgets at
// most. While this process stood still it read no answer, so that such time is
// added, once; that of just before, too: where this process hardly gets to run,
// what it waits for may be no better off.
func (w waiting) until(budget time.Duration) time.Time {
	from := w.started
	if !w.sent.IsZero() {
		from = w.sent
	}
	if w.answered.After(from) && w.answered.Before(w.started.Add(longestQueue*budget+w.stalled(w.started))) {
		from = w.answered
	}
	return from.Add(budget + w.stalled(from.Add(-longestQueue*budget)))
}

// roundsOfPoller are those of breaker.Heartbeat.Round before a decision is given
// up: after the first the answer, if it has arrived, is with the goroutine that
// reads it, which has run when a second one has come behind it.
const roundsOfPoller = 2

// wait waits for a part's answer as waiting says, and then for as long as this
// process takes to read what has arrived, CallTimeout of its own time at most.
// It gives up when ctx is done.
func (a *asking) wait(ctx context.Context, s *Store, p *part) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	a.setTimer(s.o.Budget)
	defer a.timer.Stop()
	var round <-chan struct{}
	for rounds := 0; ; {
		select {
		case <-p.done:
			return true
		case <-ctx.Done():
			return !s.leave(p)
		case <-a.timer.C:
		case <-round:
		}
		if more := a.patience(s, p); more > 0 {
			a.timer.Reset(more)
			rounds, round = 0, nil
			continue
		}
		p.to.silence()
		if rounds == roundsOfPoller || a.ran(s) >= s.o.CallTimeout {
			return !s.leave(p)
		}
		rounds++
		round = s.o.Breaker.Heartbeat.Round()
	}
}

func (a *asking) setTimer(d time.Duration) {
	if a.timer == nil {
		a.timer = time.NewTimer(d)
		return
	}
	a.timer.Reset(d)
}

// patience is how much longer to wait.
func (a *asking) patience(s *Store, p *part) time.Duration {
	left := s.o.CallTimeout - a.ran(s)
	if a.patient {
		return left
	}
	w := waiting{a.started, p.sentAt(), p.to.breaker.LastAnswer(s.o.Budget), s.o.Breaker.Heartbeat.Stalled}
	return min(left, w.until(s.o.Budget).Sub(s.now()))
}

// leave gives a part up; where its answer has come after all it is taken, and
// the part is not left.
func (s *Store) leave(p *part) bool {
	if p.leave() {
		s.counts.left.Add(1)
		return true
	}
	<-p.done
	return false
}
