package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// noteOf is a note about all counters of a decision now.
func noteOf(s *Store, number uint64) limit.Note {
	return limit.Note{Name: "gw/j:1", Number: number, Of: ^uint64(0), At: s.Clock()}
}

// back are counters as they are given back.
func back(note limit.Note, counters ...limit.Counter) []limit.Counter {
	all := slices.Clone(counters)
	for i := range all {
		all[i].Cost, all[i].At, all[i].Force = -all[i].Cost, note.At, true
	}
	return all
}

// noted decides with a note, and wants that it is not open.
func (b *bench) noted(note limit.Note, counters ...limit.Counter) (allowed bool, err error) {
	b.t.Helper()
	d, open, err := b.DecideNoted(b.t.Context(), counters, note)
	if open {
		b.t.Errorf("note %d is open: %+v, %v", note.Number, d, err)
	}
	return d.Allowed, err
}

func (b *bench) takeBack(note limit.Note, counters ...limit.Counter) {
	b.t.Helper()
	if _, err := b.TakeBack(b.t.Context(), note, back(note, counters...)); err != nil {
		b.t.Fatal(err)
	}
}

func TestNotesTellWhatWasCharged(t *testing.T) {
	t.Parallel()
	for _, algorithm := range everyAlgorithm {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			counter := longCounter(algorithm, 10)
			b.decide(counter)
			left := func() int64 { return remaining(t, b.Store, []limit.Counter{counter})[0] }
			c, rest := withCost(counter, 3), left()
			for range 2 { // from one number to the next
				note := noteOf(b.Store, uint64(b.now.UnixMicro()))
				if allowed, err := b.noted(note, c); !allowed || err != nil || left() != rest-3 {
					t.Fatalf("%v, %v, %d left", allowed, err, left())
				}
				for range 3 { // given back once
					b.takeBack(note, c)
					if left() != rest {
						t.Fatalf("%d left, want %d", left(), rest)
					}
				}
				if _, err := b.noted(note, c); !errors.Is(err, limit.ErrUnavailable) || left() != rest {
					t.Errorf("the same number once more: %v, %d left", err, left())
				}
				note.Number++
				for range 2 { // not charged: barred
					b.takeBack(note, c)
				}
				if _, err := b.noted(note, c); !errors.Is(err, limit.ErrUnavailable) || left() != rest {
					t.Errorf("after it was barred: %v, %d left", err, left())
				}
				b.now = b.now.Add(10 * time.Microsecond)
			}
		})
	}
}

// What a bucket has refilled since it was charged does not come back: whenever it
// is taken back, no more passes than its burst and its refill.
func TestBucketsTakeBackWhatTheyHaveNotRefilled(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []limit.Algorithm{limit.GCRA, limit.TokenBucket} {
		for late, refilled := range map[time.Duration]int64{0: 0, time.Second: 5, 1900 * time.Millisecond: 9, 2 * time.Second: 10, time.Hour: 10} {
			b := newBench(t)
			c := limit.Counter{Key: "{t:a}:t::m:" + algorithm.String(), Algorithm: algorithm, Limit: 10, Burst: 10, Window: 2 * time.Second, Cost: 10}
			note := noteOf(b.Store, 7)
			if allowed, err := b.noted(note, c); !allowed || err != nil {
				t.Fatal(allowed, err)
			}
			b.wait(late)
			if !b.decide(withCost(c, refilled)).Allowed { // others have it
				t.Fatalf("%s: %d are not refilled after %s", algorithm, refilled, late)
			}
			for range 2 {
				b.takeBack(note, c)
				if left := remaining(t, b.Store, []limit.Counter{c})[0]; left != 10-refilled {
					t.Errorf("%s taken back after %s: %d left, want %d", algorithm, late, left, 10-refilled)
				}
			}
		}
	}
}

// What another slot denies is given back in full to a bucket that was in use, and
// to one that was full as much as makes it full again.
func TestBucketsLoseNothingToOtherSlots(t *testing.T) {
	t.Parallel()
	c := limit.Counter{Algorithm: limit.GCRA, Limit: 1000, Burst: 1000, Window: time.Second, Cost: -5}
	for after, want := range map[time.Duration]int64{-time.Second: 0, 0: 0, 500 * time.Microsecond: 1, 3 * time.Millisecond: 4, 4500 * time.Microsecond: 5, time.Hour: 5} {
		if got := untaken(c, noon.Add(after), noon); -got.Cost != want || !got.At.Equal(noon) {
			t.Errorf("full %s later: %d are given back as of %s, want %d", after, -got.Cost, got.At, want)
		}
	}
}

// What is denied, broken, in another period or not whole leaves neither charge
// nor note.
func TestWhatIsNotChargedLeavesNoNote(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(withCost(quota(10), 4), withCost(fixed(10), 4))
	other := noteOf(b.Store, 7)
	other.At = noon.AddDate(0, -1, 0)
	_, _ = b.server.Lpush("p:{t:a}:broken", "x")
	broken := fixed(10)
	broken.Key = "{t:a}:broken"
	for name, c := range map[string]struct {
		note     limit.Note
		counters []limit.Counter
		want     error
	}{
		"denied":         {noteOf(b.Store, 7), []limit.Counter{fixed(10), withCost(quota(10), 7)}, nil},
		"broken":         {noteOf(b.Store, 7), []limit.Counter{fixed(10), broken}, limit.ErrCounterBroken},
		"another period": {other, []limit.Counter{fixed(10), quota(10)}, limit.ErrOtherPeriod},
	} {
		if allowed, err := b.noted(c.note, c.counters...); allowed || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, allowed, err)
		}
	}
	b.server.Del("p:epoch")
	if allowed, err := b.noted(noteOf(b.Store, 7), fixed(10), quota(10)); allowed || !errors.Is(err, limit.ErrRestoring) {
		t.Errorf("restoring: %v, %v", allowed, err)
	}
	b.declareWhole()
	if left := remaining(t, b.Store, []limit.Counter{fixed(10), quota(10)}); !slices.Equal(left, []int64{6, 6}) || b.server.Exists("p:noted:gw/j:1") {
		t.Errorf("%v left, keys %v", left, b.keys())
	}
	if allowed, err := b.noted(noteOf(b.Store, 7), fixed(10), quota(10)); !allowed || err != nil || b.stands("noted:gw/j:1") != 14 {
		t.Errorf("and then: %v, %v, keys %v", allowed, err, b.keys())
	}
}

// A counter judged apart has no note, and finds its period by itself; so does a
// decision that comes too late, in its own.
func TestNotedDecisionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shadow := quota(10)
	shadow.Key, shadow.Shadow = "{t:a}:t::m:shadow", true
	note := noteOf(b.Store, 3)
	note.At = noon.AddDate(0, -1, 0) // in which nothing says how a rate counts
	d, open, err := b.DecideNoted(t.Context(), []limit.Counter{fixed(10), shadow}, note)
	if err != nil || open || !d.Allowed || d.States[1].Consumed != 1 || d.States[1].Broken || b.stands("noted:gw/j:1") != 6 {
		t.Errorf("%+v, open %v, %v", d, open, err)
	}
	b.server.SetTime(noon.Add(time.Minute)) // past the deadline of what comes next
	note = noteOf(b.Store, 4)
	if allowed, err := b.noted(note, quota(10), fixed(10)); !allowed || err != nil || b.stands("noted:gw/j:1") != 8 {
		t.Errorf("late: %v, %v", allowed, err)
	}
}

// Only decisions that a note is about have one, and no receipt beside it.
func TestOthersHaveNoNote(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shadow := quota(10)
	shadow.Key, shadow.Shadow = "{t:a}:t::m:shadow", true
	unlimited := fixed(10)
	unlimited.Key, unlimited.Unlimited = "{t:a}:free", true
	note := noteOf(b.Store, 3)
	note.Of = 1<<0 | 1<<1 // neither of which can have one
	if allowed, err := b.noted(note, shadow, unlimited, fixed(10)); !allowed || err != nil || b.server.Exists("p:noted:gw/j:1") {
		t.Errorf("%v, %v, keys %v", allowed, err, b.keys())
	}
	b.server.FlushAll()
	b.declareWhole()
	if allowed, err := b.noted(noteOf(b.Store, 3), quota(10)); !allowed || err != nil || len(b.server.Keys()) != 3 {
		t.Errorf("%v, %v, keys %v; want marker, counter and note", allowed, err, b.server.Keys())
	}
	if ttl := b.server.TTL("p:noted:gw/j:1"); ttl <= 29*24*time.Hour || ttl > 30*24*time.Hour {
		t.Errorf("the note expires in %s", ttl)
	}
}

// What is to be taken back waits for quotas to be whole. Where the note was lost
// with the counters nothing is given back, though they were restored: nobody
// knows whether the charge is among what came back.
func TestTakingBackWaitsForARestore(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		b := newBench(t)
		note := noteOf(b.Store, 5)
		if allowed, err := b.noted(note, withCost(quota(10), 4)); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
		want := limit.ErrRestoring
		if lost {
			b.server.FlushAll()
			want = nil
		}
		b.server.Del("p:epoch")
		if _, err := b.TakeBack(t.Context(), note, back(note, withCost(quota(10), 4))); !errors.Is(err, want) {
			t.Errorf("lost %v: %v", lost, err)
		}
		b.declareWhole()
		b.decide(quota(10)) // with what this store remembers
		for range 2 {
			b.takeBack(note, withCost(quota(10), 4))
		}
		st := b.decide(withCost(quota(10), 0)).States[0]
		if refunded := int64(4); lost && st.Refunded != 0 || !lost && st.Refunded != refunded || st.Consumed != 5 {
			t.Errorf("lost %v: %+v", lost, st)
		}
	}
}

// A counter that holds something else by then says that there was a charge.
func TestTakingBackFromABrokenCounter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	note := noteOf(b.Store, 5)
	if allowed, err := b.noted(note, quota(10), fixed(10)); !allowed || err != nil {
		t.Fatal(allowed, err)
	}
	key := "p:{t:a}:t::m:fixed:60"
	text, err := b.server.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	b.server.Del(key)
	_, _ = b.server.Lpush(key, "x")
	for range 2 {
		if left, err := b.TakeBack(t.Context(), note, back(note, quota(10), fixed(10))); err != nil || !slices.Equal(left, []int{0, 1}) {
			t.Fatalf("left %v, %v", left, err)
		}
	}
	b.server.Del(key)
	if err := b.server.Set(key, text); err != nil {
		t.Fatal(err)
	}
	b.takeBack(note, quota(10), fixed(10))
	if left := remaining(t, b.Store, []limit.Counter{quota(10), fixed(10)}); !slices.Equal(left, []int64{10, 10}) {
		t.Errorf("%v left", left)
	}
}

// An answer that is lost, late or never asked for: the caller is told whether to
// take back, the store does not do so by itself, and all of it comes back once.
func TestOpenNotesAreTheirCallers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(o *owing) (heal func())
		open  bool
		used  int64 // before it is taken back
	}{
		"answer lost": {func(o *owing) func() {
			o.proxy.answer.Store(cutOnAnswer)
			return func() { o.proxy.answer.Store(passAnswers) }
		}, true, 1},
		"answer late": {func(o *owing) func() { return o.proxy.delay() }, true, 1},
		"call lost": {func(o *owing) func() {
			o.proxy.deaf.Store(true)
			return func() { o.proxy.deaf.Store(false) }
		}, true, 0},
		"refused": {func(o *owing) func() {
			o.server.SetError("OOM command not allowed when used memory > 'maxmemory'.")
			return func() { o.server.SetError("") }
		}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOwing(t, nil)
			note := noteOf(o.Store, 5)
			counters := []limit.Counter{gcra(100, 100), quota(100)}
			heal := c.fault(o)
			d, open, err := o.DecideNoted(t.Context(), counters, note)
			heal()
			if d.Allowed || open != c.open || !errors.Is(err, limit.ErrUnavailable) {
				t.Errorf("%+v, open %v, %v", d, open, err)
			}
			servertest.Eventually(t, 10*time.Second, "the store to be asked again", o.Available)
			if err := o.Close(); err != nil { // whatever it has to do by itself is done
				t.Fatal(err)
			}
			if _, quotas := o.used(t); quotas != c.used || o.owes() != 0 {
				t.Errorf("%d units are charged, %d owed", quotas, o.owes())
			}
			for range 2 {
				if _, err := o.direct.TakeBack(t.Context(), note, back(note, counters...)); err != nil {
					t.Fatal(err)
				}
			}
			if rate, quotas := o.used(t); rate != 0 || quotas != 0 {
				t.Errorf("%d and %d units are charged in the end", rate, quotas)
			}
		})
	}
}
