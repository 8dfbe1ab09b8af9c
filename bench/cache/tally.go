package main

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/bench/took"
)

// tally is how reads went. Its fields are a process's word to its parent, who adds them up; count may be called from
// many goroutines.
type tally struct {
	mu     sync.Mutex
	Took   took.Times
	Errors int64
	// Stale are reads of a value that was older than its TTL.
	Stale int64
	// Fault is one of the errors.
	Fault string
}

func (t *tally) count(d time.Duration, stale bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Took.Count(d)
	if stale {
		t.Stale++
	}
	if err != nil {
		t.Errors++
		t.Fault = err.Error()
	}
}

func (t *tally) add(o *tally) {
	t.Took.Add(&o.Took)
	t.Errors += o.Errors
	t.Stale += o.Stale
	if t.Fault == "" {
		t.Fault = o.Fault
	}
}

// value is what the source answers: which load it was, and when it ended.
func value(load int64, at time.Time) string {
	return strconv.FormatInt(load, 10) + " " + strconv.FormatInt(at.UnixNano(), 10)
}

// staleSlack is not held against a contender: values are written after their load.
const staleSlack = 100 * time.Millisecond

// stale reports whether v was older than its TTL when it was asked for.
func stale(v string, asked time.Time, ttl time.Duration) bool {
	_, text, _ := strings.Cut(v, " ")
	at, err := strconv.ParseInt(text, 10, 64)
	return err == nil && asked.Sub(time.Unix(0, at)) > ttl+staleSlack
}
