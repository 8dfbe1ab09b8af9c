package settle

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// record is one request as the journal holds it.
type record struct {
	At       int64         `json:"t"` // µs since the epoch
	Counters []limit.Saved `json:"c"`
}

// newRecord takes counters over, each as it is charged.
func newRecord(at time.Time, counters []limit.Counter) record {
	r := record{At: at.UnixMicro(), Counters: make([]limit.Saved, len(counters))}
	for i := range counters {
		c := &counters[i]
		used := at
		if !c.At.IsZero() {
			used = c.At
		}
		r.Counters[i] = limit.Save(c, used)
		if µs := used.UnixMicro(); µs != r.At {
			r.Counters[i].At = µs
		}
	}
	return r
}

// without is the record without the counters at the places of leave, a bit
// each, and without those that nothing is taken from.
func (r record) without(leave uint64) record {
	kept := record{At: r.At, Counters: make([]limit.Saved, 0, len(r.Counters))}
	for i, c := range r.Counters {
		if c.Cost != 0 && (!c.Unlimited || c.Algorithm.Quota()) && (i >= 64 || leave>>i&1 == 0) {
			kept.Counters = append(kept.Counters, c)
		}
	}
	return kept
}

// encode writes a record; nil where it charges nothing.
func (r record) encode() []byte {
	if len(r.Counters) == 0 {
		return nil
	}
	b, _ := json.Marshal(r) // strings, numbers and a time of this century
	return b
}

func decode(b []byte) (r record, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, fmt.Errorf("journal record: %w", err)
	}
	return r, nil
}

// counter is one of the record's as the store takes it: whatever its state.
func (r *record) counter(i int) (c limit.Counter, at int64, err error) {
	s := &r.Counters[i]
	if at = s.At; at == 0 {
		at = r.At
	}
	c, err = s.Counter(time.UnixMicro(at).UTC())
	c.Force = true
	return c, at, err
}
