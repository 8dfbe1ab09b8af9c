package rehearsal

import (
	"encoding/json"
	"time"
)

// Protection is what stands between the readers and the source.
type Protection string

// The protections.
const (
	// Plain is a cache without coalescing: whoever misses loads, however many do.
	Plain Protection = "plain"
	// Today is the keys' settings as the plan has them.
	Today Protection = "today"
	// Proposed is the report's proposal.
	Proposed Protection = "proposed"
)

// Millis is a time that JSON has in milliseconds.
type Millis time.Duration

// MarshalJSON implements json.Marshaler.
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(m).Microseconds()) / 1000)
}

// KeyResult is what happened to one key in one run.
type KeyResult struct {
	Key string `json:"key"`
	// NotCached: each read was a load.
	NotCached bool `json:"notCached,omitempty"`

	Reads int `json:"reads"`
	Loads int `json:"loads"`
	// PeakLoads is how many loads of it were in flight at once, at most.
	PeakLoads int `json:"peakLoads"`
	// WaitersP99 is how many readers were waiting when a load ended that they share, of all nodes.
	WaitersP99 int `json:"waitersP99"`
	// P50 and P99 of the reads' times.
	P50 Millis `json:"p50Ms"`
	P99 Millis `json:"p99Ms"`
	// Stale is reads past the TTL, within the stale limits; Errors is reads that failed.
	Stale  int `json:"stale"`
	Errors int `json:"errors"`
	// StaleFor is how long after a change the old value was still read, at most.
	StaleFor Millis `json:"staleForMs"`
	// Stampeded: more loads were in flight at once than the lock lets through; without Redis, than there are nodes.
	Stampeded bool `json:"stampeded"`
}

// Run is one scenario under one protection.
type Run struct {
	Scenario   Scenario   `json:"scenario"`
	Protection Protection `json:"protection"`
	// Keys are in the plan's order.
	Keys []KeyResult `json:"keys"`
	// Unsent is reads that were due and not sent, since too many waited.
	Unsent int `json:"unsent,omitempty"`
}

// NotCached is how many of the keys are not cached in the run.
func (r *Run) NotCached() (n int) {
	for i := range r.Keys {
		if r.Keys[i].NotCached {
			n++
		}
	}
	return n
}

// Worst is the run over all keys: sums of counts, and the largest of everything else.
func (r *Run) Worst() KeyResult {
	var w KeyResult
	for _, k := range r.Keys {
		w.Reads, w.Loads, w.Stale, w.Errors = w.Reads+k.Reads, w.Loads+k.Loads, w.Stale+k.Stale, w.Errors+k.Errors
		w.PeakLoads, w.WaitersP99 = max(w.PeakLoads, k.PeakLoads), max(w.WaitersP99, k.WaitersP99)
		w.P50, w.P99, w.StaleFor = max(w.P50, k.P50), max(w.P99, k.P99), max(w.StaleFor, k.StaleFor)
		w.Stampeded = w.Stampeded || k.Stampeded
	}
	return w
}

// Report is what a rehearsal found.
type Report struct {
	Rate    float64 `json:"rate"`
	Nodes   int     `json:"nodes"`
	SpeedUp float64 `json:"speedUp"`
	Each    Millis  `json:"eachMs"`
	Runs    []Run   `json:"runs"`
	// Proposal is what to set; nil where today's settings will do.
	Proposal *Proposal `json:"proposal,omitempty"`
}

// Stampeded are the keys that stampeded in any scenario under the protection, in the plan's order.
func (r *Report) Stampeded(by Protection) []string {
	var keys []string
	seen := map[string]bool{}
	for _, run := range r.Runs {
		for _, k := range run.Keys {
			if run.Protection == by && k.Stampeded && !seen[k.Key] {
				seen[k.Key] = true
				keys = append(keys, k.Key)
			}
		}
	}
	return keys
}

// find returns a run, nil where it was not made.
func (r *Report) find(s Scenario, by Protection) *Run {
	for i := range r.Runs {
		if r.Runs[i].Scenario == s && r.Runs[i].Protection == by {
			return &r.Runs[i]
		}
	}
	return nil
}
