package journal

import (
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// sums adds up charges by counter, and by the window or period they fall in.
type sums struct {
	now   time.Time
	clock time.Time // the store's
	log   *slog.Logger
	place map[sumKey]int
	all   []sum
	// requests is how many records there were.
	requests int
}

type sumKey struct {
	key  string
	span string // a period's name
	n    int64  // a window's number
}

type sum struct {
	counter limit.Counter
	// Of a bucket: what was taken from it in this stretch, and how many units are
	// given back of what other stretches, or the store itself, had charged.
	taken []taken
	back  int64
}

// taken are units that a bucket let pass, and when, µs.
type taken struct{ at, units int64 }

func newSums(now, clock time.Time, log *slog.Logger) *sums {
	return &sums{now: now, clock: clock, log: log, place: map[sumKey]int{}}
}

// add takes a record of the journal; one that says only that a request is in
// flight, or has ended well, is none to charge. One that cannot be read is of another
// version, is logged and left out.
func (s *sums) add(value []byte) {
	kind, _, body := split(value)
	if kind == kindBegun || kind == kindEnded {
		return
	}
	s.requests++
	r, err := decode(body)
	if err != nil {
		s.log.Error("a record of what passed uncounted cannot be read; it is not charged", "error", err)
		return
	}
	for i := range r.Counters {
		c, at, err := r.counter(i)
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			s.log.Error("a counter of what passed uncounted cannot be charged", "counter", r.Counters[i].Key, "error", err)
			continue
		}
		s.take(c, at)
	}
}

func (s *sums) take(c limit.Counter, at int64) {
	k := sumKey{key: c.Key}
	switch {
	case c.Renews():
		k.span = c.Calendar.At(c.At).Name()
	case !c.Algorithm.Quota() && !c.Algorithm.Bucket():
		k.n = at / c.Window.Microseconds()
	}
	i, ok := s.place[k]
	if !ok {
		i = len(s.all)
		s.place[k], s.all = i, append(s.all, sum{counter: c})
		s.all[i].counter.Cost = 0
	}
	t := &s.all[i]
	t.counter.Cost = min(max(t.counter.Cost+c.Cost, -limit.MaxInteger), limit.MaxInteger)
	t.counter.Limit, t.counter.Burst, t.counter.Granted = c.Limit, c.Burst, c.Granted
	if c.Algorithm.Bucket() {
		t.bucket(&c, at, s.clock)
	}
}

// bucket takes over what was taken at a time, or is given back of it: that of
// this stretch never was taken then, and of any other the bucket takes back what
// it has not refilled since.
func (t *sum) bucket(c *limit.Counter, at int64, clock time.Time) {
	if c.Cost > 0 {
		t.taken = append(t.taken, taken{at, c.Cost})
		return
	}
	for i := range t.taken {
		if u := &t.taken[i]; u.at == at {
			n := min(u.units, -c.Cost)
			u.units -= n
			c.Cost += n
		}
	}
	c.At = time.UnixMicro(at)
	t.back = min(t.back+c.GivesBack(clock), limit.MaxInteger)
}

// counters are the sums as they are to be charged, in the order in which they
// first came: a repetition has the same ones.
func (s *sums) counters() []limit.Counter {
	all := make([]limit.Counter, len(s.all))
	for i := range s.all {
		t := &s.all[i]
		c := t.counter
		switch {
		case c.Algorithm.Bucket():
			c.Cost, c.At = min(t.owed(s.now.UnixMicro()), c.Burst)-t.back, time.Time{}
		case !c.Algorithm.Quota():
			c.Cost = min(c.Cost, c.Limit)
		}
		all[i] = c
	}
	return all
}

// owed is how many units of a bucket have not been refilled since they passed. A
// unit that is refilled in part is owed whole: it may not pass once more.
func (t *sum) owed(now int64) int64 {
	c := &t.counter
	full := int64(0) // when it would be full again, µs
	for _, u := range t.taken {
		if took, _, ok := limit.Emission(c.Limit, c.Window, min(u.units, c.Burst)); ok && u.units > 0 {
			full = max(full, u.at) + took
		}
	}
	units := limit.Refilled(c.Limit, c.Window, time.Duration(full-now)*time.Microsecond)
	if took, _, ok := limit.Emission(c.Limit, c.Window, units); ok && took < full-now {
		units++
	}
	return units
}
