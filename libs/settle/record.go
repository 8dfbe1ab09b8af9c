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
}

// encode writes a request; nil where it charges nothing. Shadow and Force have
// had their say: what is here is charged.
func encode(at time.Time, counters []limit.Counter) []byte {
	r := record{At: at.UnixMicro(), Counters: make([]charge, 0, len(counters))}
	for i := range counters {
		c := &counters[i]
		if c.Cost == 0 || c.Unlimited && !c.Algorithm.Quota() {
			continue
		}
		ch := charge{
			Key: c.Key, Algorithm: c.Algorithm, Limit: c.Limit, Burst: c.Burst, Unlimited: c.Unlimited, Window: c.Window,
			Prepaid: c.Prepaid, Granted: c.Granted, Rollover: c.Rollover, Since: c.Since, Cost: c.Cost,
		}
		if c.Renews() {
			ch.Calendar = c.Calendar.At(at).Calendar.String()
		}
		r.Counters = append(r.Counters, ch)
	}
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
