package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Hold is what a request in flight may have been charged and may yet have back.
// The zero Hold holds nothing.
type Hold struct {
	slot int // 0 where there is nothing on disk
}

// periodsTried is how often a charge is asked for whose period ends meanwhile.
const periodsTried = 3

// Decide has the store charge the counters, of which those at the places of back
// (a bit each; not those judged apart) are to be given back if this process dies
// before the end of their request is known. What that takes is on disk before
// the store is asked: whatever instant the process dies at, the next start asks
// the store whether it was charged, and has it given back if so. Where the disk
// does not take it, a kill loses it, and that is counted and logged.
//
// A decision that passes is to be ended with Keep or GiveBack. Of any other
// nothing stays charged. Errors are the store's.
func (s *Settler) Decide(ctx context.Context, counters []limit.Counter, back uint64) (limit.Decision, Hold, error) {
	for try := 1; ; try++ {
		h, note := s.hold(counters, back)
		d, open, err := s.o.Store.DecideNoted(ctx, counters, note)
		switch {
		case open:
			s.unsettled(h, note, counters)
		case err != nil || !d.Allowed:
			s.Keep(h)
		default:
			return d, h, nil
		}
		if try == periodsTried || !errors.Is(err, limit.ErrOtherPeriod) {
			return d, Hold{}, err
		}
	}
}

// hold writes down what a decision may charge and is to come back, before it is
// asked for. It writes to the page cache and keeps nothing of its arguments.
func (s *Settler) hold(counters []limit.Counter, back uint64) (Hold, limit.Note) {
	note := limit.Note{Of: back, At: s.o.Store.Clock().Truncate(time.Microsecond)}
	var h Hold
	for i := range counters {
		if note.About(i) && takes(&counters[i]) {
			h.slot, note.Name, note.Number = s.holds.next(s.o.Store.Place(counters[i].Key))
			break
		}
	}
	if h.slot == 0 {
		return h, limit.Note{}
	}
	if err := s.write(h, &note, counters, back); err != nil {
		// What is there now may be whole. Its note will never be asked with.
		_ = s.holds.free(h.slot)
		s.metrics.unheld.Inc()
		s.complain.Say(slog.LevelError, "what a request is charged cannot be written to disk first; a kill would not give it back", "error", err)
		return Hold{}, limit.Note{}
	}
	return h, note
}

// write fills a hold's slot with those counters that are to come back, a bit each.
func (s *Settler) write(h Hold, note *limit.Note, counters []limit.Counter, back uint64) error {
	w := s.writers.Get().(*writer)
	defer s.writers.Put(w)
	return s.holds.write(h.slot, slotHeld, note.Number, w.held(note, counters, back))
}

// remember has a slot taken back by what it should hold, and could not be written.
func (s *Settler) remember(slot int, number uint64, r record) {
	s.open.add(openSlot{slot: slot, number: number, body: r.encode()})
}

// unsettled has the store take back what it may have charged without having
// said so: all of it, since the request goes on as if none of it had been asked
// for.
func (s *Settler) unsettled(h Hold, note limit.Note, counters []limit.Counter) {
	if h.slot == 0 {
		return
	}
	var all uint64
	for i := range min(len(counters), limit.MaxNoted) {
		if !counters[i].Apart() {
			all |= 1 << i
		}
	}
	if err := s.write(h, &note, counters, all); err != nil {
		s.complain.Say(slog.LevelError, "what may have been charged without an answer cannot be written to disk; a kill would give less of it back", "error", err)
		s.remember(h.slot, note.Number, heldRecord(&note, counters, all, nil))
		return
	}
	s.open.add(openSlot{slot: h.slot})
}

// Keep ends a hold: what was charged stands.
func (s *Settler) Keep(h Hold) {
	if h.slot == 0 {
		return
	}
	if err := s.holds.free(h.slot); err != nil {
		s.complain.Say(slog.LevelError, "a hold cannot be ended; a kill would give back what is to stand", "error", err)
	}
}

// GiveBack ends a hold: of what the request was charged at a time these counters
// are given back, once, with costs below 0; a counter's own At goes before that
// time. What it returned from survives a kill of the process.
func (s *Settler) GiveBack(h Hold, at time.Time, counters []limit.Counter) {
	r := newRecord(at, counters)
	switch {
	case h.slot == 0:
		s.append(r.encode())
	case len(r.Counters) == 0:
		s.Keep(h)
	default:
		if err := s.move(h.slot, r.encode()); err != nil {
			s.complain.Say(slog.LevelError, "what a request gives back cannot be written to disk; a kill would give back all that is held", "error", err)
			// The store can be asked by the note as well, and ends it.
			u := s.holds.use(h.slot)
			r.Note = u.note
			s.remember(h.slot, u.number, r)
		}
	}
}

// move takes a slot's record into the journal. An error means that it stays where
// it is.
func (s *Settler) move(slot int, record []byte) error {
	b := append(make([]byte, headBytes, headBytes+len(record)), record...)
	return s.journal(slot, record, func(state uint32, number uint64) error { return s.holds.write(slot, state, number, b) })
}

// journal moves a record into the journal. Its slot is made to say first what
// number the record gets there: whoever finds the slot after a kill knows by the
// journal whether it came that far. At most one slot is moving at a time.
func (s *Settler) journal(slot int, record []byte, say func(state uint32, number uint64) error) error {
	s.appending.Lock()
	defer s.appending.Unlock()
	number := s.spool.NextSeq()
	if err := say(slotMoving, number); err != nil {
		return err
	}
	_ = s.spool.Append(record) // drops are the spool's to count
	if s.spool.NextSeq() == number {
		// The journal is closed: the next start moves it.
		return say(slotOwed, 0)
	}
	s.end(slot) // where that cannot be written, the journal says that it has it
	return nil
}

// end frees a slot.
func (s *Settler) end(slot int) {
	if err := s.holds.free(slot); err != nil {
		s.complain.Say(slog.LevelError, "a hold that has come to its end is still on disk", "error", err)
	}
}

// endHeld ends what an earlier process held when it died. What was on its way
// into the journal goes on, the one that was moving first, before its number
// goes to another. The others' clients have had no answer, so each of these
// requests has failed: whether it was charged the store says, once it can be
// asked.
func (s *Settler) endHeld() error {
	taken, err := s.holds.takenBefore()
	for _, slot := range append(taken[slotMoving], taken[slotOwed]...) {
		if err == nil {
			err = s.goOn(slot)
		}
	}
	if err != nil {
		return fmt.Errorf("end what was in flight: %w", err)
	}
	for _, slot := range taken[slotHeld] {
		s.open.add(openSlot{slot: slot})
	}
	if n := s.open.len(); n > 0 {
		s.o.Log.Info("requests were in flight when the process before ended; what they were charged is given back", "requests", n)
	}
	return nil
}

// goOn moves a slot's record into the journal, unless it is there. The slot has
// the record already: all that is written needs no room on the disk.
func (s *Settler) goOn(slot int) error {
	head, body, ok, err := s.holds.read(slot)
	if err != nil {
		return err
	}
	if !ok || head.state == slotMoving && s.spool.NextSeq() > head.number {
		s.end(slot)
		return nil
	}
	return s.journal(slot, body, func(state uint32, number uint64) error {
		head.state, head.number = state, number
		return s.holds.mark(slot, head)
	})
}
