package main

import (
	"sync"
	"time"

	"github.com/sluice-platform/sluice/bench/took"
)

// tally is how requests went. Its fields are a process's word to its parent, who adds them up; count may be called from
// many goroutines.
type tally struct {
	mu                     sync.Mutex
	Took                   took.Times
	Passed, Denied, Errors int64
	// Fault is one of the errors.
	Fault string
	// CPU is what the process spent.
	CPU time.Duration
	// Back is how long after Redis went on the last answer was late or an error.
	Back time.Duration
}

func (t *tally) count(d time.Duration, passed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Took.Count(d)
	switch {
	case err != nil:
		t.Errors++
		t.Fault = err.Error()
	case passed:
		t.Passed++
	default:
		t.Denied++
	}
}

func (t *tally) late(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Back = max(t.Back, after)
}

func (t *tally) add(o *tally) {
	t.Took.Add(&o.Took)
	t.Passed += o.Passed
	t.Denied += o.Denied
	t.Errors += o.Errors
	t.CPU += o.CPU
	t.Back = max(t.Back, o.Back)
	if t.Fault == "" {
		t.Fault = o.Fault
	}
}
