package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit"
)

// openSlots are the slots of decisions of which only the store knows whether
// they were charged.
type openSlots struct {
	mu    sync.Mutex
	slots []openSlot
	n     int           // those that are being looked at included
	more  chan struct{} // has one where slots were added
}

// openSlot is one of them. What it should hold is here where the disk did not
// take it: a record, with the number of its note.
type openSlot struct {
	slot   int
	number uint64
	body   []byte
}

func newOpenSlots() *openSlots { return &openSlots{more: make(chan struct{}, 1)} }

func (o *openSlots) add(slot openSlot) {
	o.mu.Lock()
	o.n++
	o.mu.Unlock()
	o.again([]openSlot{slot})
}

// again takes slots back that are still open.
func (o *openSlots) again(slots []openSlot) {
	if len(slots) == 0 {
		return
	}
	o.mu.Lock()
	o.slots = append(o.slots, slots...)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take returns all there are; each is done, or open again.
func (o *openSlots) take() []openSlot {
	o.mu.Lock()
	defer o.mu.Unlock()
	slots := o.slots
	o.slots = nil
	return slots
}

func (o *openSlots) done() {
	o.mu.Lock()
	o.n--
	o.mu.Unlock()
}

func (o *openSlots) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// failuresTried is how many slots of a round may fail before the others wait for
// the next one.
const failuresTried = 8

// takeBackOpen has the store take back what open slots hold until ctx is
// cancelled. One that the store does not take keeps no other from its turn.
func (s *Settler) takeBackOpen(ctx context.Context) {
	pause := backoff.Backoff{Max: time.Second}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.open.more:
		}
		failed := s.takeBackRound(ctx)
		if failed == nil {
			pause.Reset()
			continue
		}
		level := slog.LevelDebug // the breaker has said that the store is away
		if !errors.Is(failed, limit.ErrUnavailable) && ctx.Err() == nil {
			level = slog.LevelError
		}
		s.o.Log.Log(ctx, level, "what was charged without an end is not given back yet; trying again", "requests", s.open.len(), "cause", failed)
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

// takeBackRound tries the open slots once, those that failed last behind the
// others, and returns why some are still open.
func (s *Settler) takeBackRound(ctx context.Context) (cause error) {
	slots := s.open.take()
	var failed []openSlot
	for len(slots) > 0 && len(failed) < failuresTried {
		slot := slots[0]
		slots = slots[1:]
		if err := s.takeBack(ctx, slot); err != nil {
			cause, failed = err, append(failed, slot)
			continue
		}
		s.open.done()
	}
	s.open.again(append(slots, failed...))
	return cause
}

// takeBack ends an open slot. An error means that it is to be tried again.
func (s *Settler) takeBack(ctx context.Context, o openSlot) error {
	number, body := o.number, o.body
	if body == nil {
		head, held, ok, err := s.holds.read(o.slot)
		if err != nil {
			return err
		}
		if !ok { // torn: it was never asked for
			s.end(o.slot)
			return nil
		}
		number, body = head.number, held
	}
	note, counters, err := decodeHeld(number, body)
	if err != nil {
		s.o.Log.Error("what a request in flight was charged cannot be read; it is not given back", "error", err)
		s.end(o.slot)
		return nil
	}
	left, err := s.o.Store.TakeBack(ctx, note, counters)
	if err != nil {
		return err
	}
	if len(left) > 0 { // the journal gives back each of them by itself
		var rest []limit.Counter
		for _, i := range left {
			rest = append(rest, counters[i])
		}
		return s.move(o.slot, newRecord(note.At, rest).encode())
	}
	s.metrics.settled.Inc()
	s.end(o.slot)
	return nil
}
