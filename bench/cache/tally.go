package main

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tally is how reads went. Its fields are a process's word to its parent, who adds them up; count may be called from
// many goroutines.
type tally struct {
	mu sync.Mutex
	// Took counts reads by bucket of their time.
	Took          map[int]int64
	Max           time.Duration
	Reads, Errors int64
	// Stale are reads of a value that was older than its TTL.
	Stale int64
	// Fault is one of the errors.
	Fault string
}

// A bucket is 1 % wide, so that is how exact a quantile is.
const bucketWidth = 1.01

func bucket(d time.Duration) int {
	return int(math.Log(float64(max(d, time.Nanosecond))) / math.Log(bucketWidth))
}

func (t *tally) count(took time.Duration, stale bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Took == nil {
		t.Took = map[int]int64{}
	}
	t.Reads++
	t.Took[bucket(took)]++
	t.Max = max(t.Max, took)
	if stale {
		t.Stale++
	}
	if err != nil {
		t.Errors++
		t.Fault = err.Error()
	}
}

func (t *tally) add(o *tally) {
	if t.Took == nil {
		t.Took = map[int]int64{}
	}
	for b, n := range o.Took {
		t.Took[b] += n
	}
	t.Max = max(t.Max, o.Max)
	t.Reads += o.Reads
	t.Errors += o.Errors
	t.Stale += o.Stale
	if t.Fault == "" {
		t.Fault = o.Fault
	}
}

// quantile is the time within which the share q of reads ended; 0 without reads.
func (t *tally) quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(t.Reads)))
	lowest, highest := math.MaxInt, math.MinInt
	for b := range t.Took {
		lowest, highest = min(lowest, b), max(highest, b)
	}
	for b := lowest; b <= highest; b++ {
		if rank -= t.Took[b]; rank <= 0 {
			return min(t.Max, time.Duration(math.Pow(bucketWidth, float64(b)+1)))
		}
	}
	return t.Max
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
