package limit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

// Saved is a counter and what is to be taken from it, as it is kept to be
// charged later: by another process perhaps, and when its rule is gone. Shadow
// and Force have had their say by then.
type Saved struct {
	Key       string        `json:"k"`
	Algorithm Algorithm     `json:"a"`
	Limit     int64         `json:"l,omitempty"`
	Burst     int64         `json:"b,omitempty"`
	Unlimited bool          `json:"u,omitempty"`
	Window    time.Duration `json:"w,omitempty"`
	// Calendar is that of the period the units were used in, by name.
	Calendar string    `json:"p,omitempty"`
	Prepaid  bool      `json:"pp,omitempty"`
	Granted  int64     `json:"g,omitempty"`
	Rollover int64     `json:"r,omitempty"`
	Since    time.Time `json:"s,omitzero"`
	Cost     int64     `json:"n"`
	// At is when the units were used, µs, where whoever keeps it does not say so
	// for all of its counters.
	At int64 `json:"t,omitempty"`
}

// Save takes over a counter whose units were used at a time. It leaves At to the
// caller.
func Save(c *Counter, used time.Time) Saved {
	s := Saved{
		Key: c.Key, Algorithm: c.Algorithm, Limit: c.Limit, Burst: c.Burst, Unlimited: c.Unlimited, Window: c.Window,
		Prepaid: c.Prepaid, Granted: c.Granted, Rollover: c.Rollover, Since: c.Since, Cost: c.Cost,
	}
	if c.Renews() {
		s.Calendar = c.Calendar.At(used).Calendar.String()
	}
	return s
}

// Counter is the counter again, used at a time. An error means that its calendar
// is none that this build knows.
func (s *Saved) Counter(at time.Time) (Counter, error) {
	c := Counter{
		Key: s.Key, Algorithm: s.Algorithm, Limit: s.Limit, Burst: s.Burst, Unlimited: s.Unlimited, Window: s.Window,
		Prepaid: s.Prepaid, Granted: s.Granted, Rollover: s.Rollover, Since: s.Since, Cost: s.Cost, At: at,
	}
	if !c.Renews() {
		return c, nil
	}
	var err error
	c.Calendar, err = savedCalendar(s.Calendar)
	return c, err
}

// savedCalendar finds a calendar by its name, such as month+15@Europe/Istanbul.
func savedCalendar(name string) (period.Calendar, error) {
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
