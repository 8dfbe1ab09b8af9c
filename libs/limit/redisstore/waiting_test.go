package redisstore

import (
	"testing"
	"time"
)

// When silence has lasted long enough, in milliseconds since the decision
// began, at a budget of 5.
func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time {
		if ms < 0 {
			return time.Time{}
		}
		return began.Add(time.Duration(ms) * time.Millisecond)
	}
	const never = -1
	for name, c := range map[string]struct {
		sent, answered int
		stalls         [][2]int // from, to
		until          int
	}{
		"queueing":                            {never, never, nil, 5},
		"sent at once":                        {0, never, nil, 5},
		"sent after queueing":                 {4, never, nil, 9},
		"another was answered before":         {3, 2, nil, 8},
		"another was answered since":          {0, 3, nil, 8},
		"others are answered while it queues": {never, 42, nil, 47},
		"queueing for too long":               {never, 51, nil, 5},
		"sent late, and others are answered":  {49, 51, nil, 54},
		"a stall just before it was sent":     {20, never, [][2]int{{0, 20}}, 45},
		"a stall long before":                 {60, never, [][2]int{{0, 10}}, 65},
		"a stall partly so long ago":          {60, never, [][2]int{{0, 20}}, 75},
		"a stall while it queued":             {never, never, [][2]int{{1, 21}}, 25},
		"a stall since it was sent":           {1, never, [][2]int{{2, 502}}, 506},
		"a stall since another's answer":      {0, 10, [][2]int{{11, 21}}, 25},
		"half of the time":                    {0, never, [][2]int{{2, 4}, {6, 8}, {10, 12}}, 11},
		"a stall makes queueing longer":       {never, 70, [][2]int{{1, 31}}, 86},
	} {
		w := waiting{started: began, sent: at(c.sent), answered: at(c.answered), stalled: func(since time.Time) (sum time.Duration) {
			for _, s := range c.stalls {
				if from, to := at(s[0]), at(s[1]); to.After(since) {
					sum += to.Sub(later(from, since))
				}
			}
			return sum
		}}
		if got := w.until(5 * time.Millisecond); !got.Equal(at(c.until)) {
			t.Errorf("%s: until %s, want %d ms", name, got.Sub(began), c.until)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
