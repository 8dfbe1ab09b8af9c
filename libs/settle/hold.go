package settle

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Hold is what a request in flight was charged and may yet have back. The zero
// Hold holds nothing.
type Hold struct {
	record record
	slot   int // 0 where there is nothing on disk
	head   slotHead
}

// Hold notes, before a request is forwarded, what is given back if it comes to
// no answer because this process dies: the counters with their costs below 0.
// End it with Keep or GiveBack. What it returned from survives a kill of the
// process; where the disk does not take it, only a kill loses it, and that is
// logged. It writes to the page cache and keeps nothing of its arguments.
func (s *Settler) Hold(at time.Time, counters []limit.Counter) Hold {
	h := Hold{record: newRecord(at, counters)}
	if len(h.record.without(0).Counters) == 0 {
		return h
	}
	var err error
	if len(counters) > maxHeld {
		err = fmt.Errorf("%d counters: a hold has room for %d", len(counters), maxHeld)
	} else {
		h.slot, h.head, err = s.holds.take(h.record.encode())
	}
	if err != nil {
		s.o.Log.Error("what a request in flight was charged is not on disk; a kill would not give it back", "error", err)
	}
	return h
}

// Keep ends a hold: what was charged stands.
func (s *Settler) Keep(h Hold) {
	if h.slot == 0 {
		return
	}
	if err := s.holds.free(h.slot); err != nil {
		s.o.Log.Error("a hold cannot be ended; the next start gives back what is to stand", "error", err)
	}
}

// GiveBack ends a hold: what it holds is given back, once, but for the counters
// at the places of keep, a bit each.
func (s *Settler) GiveBack(h Hold, keep uint64) {
	if err := s.move(h, keep); err != nil {
		s.o.Log.Error("a hold cannot be ended; what it holds is given back by the next start", "error", err)
	}
}

// move takes a hold into the journal. Its slot says first what number the record
// gets there: whoever finds the slot after a kill knows by the journal whether
// it came that far. At most one slot is moving at a time.
func (s *Settler) move(h Hold, keep uint64) error {
	b := h.record.without(keep).encode()
	switch {
	case h.slot == 0:
		s.append(b)
		return nil
	case b == nil:
		return s.holds.free(h.slot)
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	h.head.state, h.head.number, h.head.keep = slotMoving, s.spool.NextSeq(), keep
	if err := s.holds.mark(h.slot, h.head); err != nil {
		return err
	}
	_ = s.spool.Append(b) // drops are the spool's to count
	if s.spool.NextSeq() == h.head.number {
		// The journal is closed: the next start moves it.
		h.head.state = slotHeld
		return s.holds.mark(h.slot, h.head)
	}
	return s.holds.free(h.slot)
}

// giveBackHeld ends what an earlier process held when it died: no client has had
// an answer, so each of these requests has failed. The one that was moving comes
// first, before its number goes to another.
func (s *Settler) giveBackHeld() error {
	held := 0
	for _, state := range []uint32{slotMoving, slotHeld} {
		err := s.holds.each(state, func(slot int, head slotHead, body []byte) error {
			if state == slotMoving && s.spool.NextSeq() > head.number {
				return s.holds.free(slot)
			}
			h := Hold{slot: slot, head: head}
			if err := json.Unmarshal(body, &h.record); err != nil {
				s.o.Log.Error("what a request in flight was charged cannot be read; it is not given back", "error", err)
				return s.holds.free(slot)
			}
			held++
			return s.move(h, head.keep)
		})
		if err != nil {
			return fmt.Errorf("give back what was in flight: %w", err)
		}
	}
	if held > 0 {
		s.o.Log.Info("requests were in flight when the process before ended; what they were charged is given back", "requests", held)
	}
	return s.holds.clear()
}
