package settle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// record is one request as the journal holds it.
type record struct {
	At       int64    `json:"t"` // µs since the epoch
	Counters []charge `json:"c"`
}

// charge is a counter and what is to be taken from it.
type charge struct {
	Key       string          `json:"k"`
	Algorithm limit.Algorithm `json:"a"`
	Limit     int64           `json:"l,omitempty"`
	Burst     int64           `json:"b,omitempty"`
	Unlimited bool            `json:"u,omitempty"`
	Window    time.Duration   `json:"w,omitempty"`
	// Calendar is that of the period the units were used in, by name.
	Calendar string    `json:"p,omitempty"`
	Prepaid  bool      `json:"pp,omitempty"`
	Granted  int64     `json:"g,omitempty"`
	Rollover int64     `json:"r,omitempty"`
	Since    time.Time `json:"s,omitzero"`
	Cost     int64     `json:"n"`
	// At is when the units were used, µs, where that is not the record's time.
	At int64 `json:"t,omitempty"`
}

// newRecord takes counters over, each as it is charged. Shadow and Force have
// had their say.
func newRecord(at time.Time, counters []limit.Counter) record {
	r := record{At: at.UnixMicro(), Counters: make([]charge, len(counters))}
	for i := range counters {
		c := &counters[i]
		ch := charge{
			Key: c.Key, Algorithm: c.Algorithm, Limit: c.Limit, Burst: c.Burst, Unlimited: c.Unlimited, Window: c.Window,
			Prepaid: c.Prepaid, Granted: c.Granted, Rollover: c.Rollover, Since: c.Since, Cost: c.Cost,
		}
		used := at
		if !c.At.IsZero() {
			used = c.At
		}
		if µs := used.UnixMicro(); µs != r.At {
			ch.At = µs
		}
		if c.Renews() {
			ch.Calendar = c.Calendar.At(used).Calendar.String()
		}
		r.Counters[i] = ch
	}
	return r
}

// without is the record without the counters at the places of leave, a bit
// each, and without those that nothing is taken from.
func (r record) without(leave uint64) record {
	kept := record{At: r.At, Counters: make([]charge, 0, len(r.Counters))}
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

// usedAt is when the charge's units were used, µs, in a record of that time.
func (c *charge) usedAt(record int64) int64 {
	if c.At != 0 {
		return c.At
	}
	return record
}

// counter is the charge as the store takes it, used at a time.
func (c *charge) counter(at time.Time) (limit.Counter, error) {
	n := limit.Counter{
		Key: c.Key, Algorithm: c.Algorithm, Limit: c.Limit, Burst: c.Burst, Unlimited: c.Unlimited, Window: c.Window,
		Prepaid: c.Prepaid, Granted: c.Granted, Rollover: c.Rollover, Since: c.Since, Cost: c.Cost, At: at, Force: true,
	}
	if !n.Renews() {
		return n, nil
	}
	var err error
	n.Calendar, err = calendar(c.Calendar)
	return n, err
}

// calendar finds a calendar by its name, such as month+15@Europe/Istanbul.
func calendar(name string) (period.Calendar, error) {
	rest, zone, _ := strings.Cut(name, "@") // zones may hold a plus
	unit, day, _ := strings.Cut(rest, "+")
	spec := period.Spec{Unit: unit, Zone: zone}
	if n, err := strconv.Atoi(day); err == nil {
		spec.AnchorDay = n
	} else {
		spec.WeekStart = day
	}
	c, err := period.New(spec)
	if err != nil {
		return period.Calendar{}, fmt.Errorf("calendar %q: %w", name, err)
	}
	return c, nil
}
