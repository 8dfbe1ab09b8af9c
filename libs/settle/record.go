package settle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// record is one request as the journal and the slots hold it.
type record struct {
	At int64 `json:"t"` // µs since the epoch
	// Note is the name of the note that says whether it was charged; of a slot's
	// only.
	Note     string        `json:"m,omitempty"`
	Counters []limit.Saved `json:"c"`
}

// newRecord takes counters over, each as it is charged, but for those that
// nothing is taken from.
func newRecord(at time.Time, counters []limit.Counter) record {
	r := record{At: at.UnixMicro(), Counters: make([]limit.Saved, 0, len(counters))}
	for i := range counters {
		c := &counters[i]
		if !takes(c) {
			continue
		}
		used := at
		if !c.At.IsZero() {
			used = c.At
		}
		saved := limit.Save(c, used)
		if µs := used.UnixMicro(); µs != r.At {
			saved.At = µs
		}
		r.Counters = append(r.Counters, saved)
	}
	return r
}

// takes reports whether anything is taken from a counter, or given back to it.
func takes(c *limit.Counter) bool { return c.Cost != 0 && (!c.Unlimited || c.Algorithm.Quota()) }

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

// writer writes slots, and is used again.
type writer struct {
	record record
	text   bytes.Buffer
	json   *json.Encoder
}

func newWriter() any {
	w := new(writer)
	w.json = json.NewEncoder(&w.text)
	return w
}

// held writes what a decision with a note may charge, as it is to come back,
// behind room for a slot's head. The bytes are the writer's.
func (w *writer) held(note *limit.Note, counters []limit.Counter, back uint64) []byte {
	w.record = heldRecord(note, counters, back, w.record.Counters[:0])
	w.text.Reset()
	w.text.Write(unused[:])
	_ = w.json.Encode(&w.record) // strings, numbers and a time of this century
	clear(w.record.Counters)
	return w.text.Bytes()
}

// heldRecord is what a decision with a note may charge to the counters at the
// places of back, as it is to come back. It takes over room for them.
func heldRecord(note *limit.Note, counters []limit.Counter, back uint64, room []limit.Saved) record {
	r := record{At: note.At.UnixMicro(), Note: note.Name, Counters: room}
	for i := range counters {
		if c := &counters[i]; back>>i&1 == 1 && takes(c) {
			saved := limit.Save(c, note.At)
			saved.Cost = -saved.Cost
			r.Counters = append(r.Counters, saved)
		}
	}
	return r
}

var errNoNote = errors.New("a slot names no note")

// decodeHeld reads what held wrote, with the number of the slot's head.
func decodeHeld(number uint64, b []byte) (limit.Note, []limit.Counter, error) {
	r, err := decode(b)
	if err != nil {
		return limit.Note{}, nil, err
	}
	if r.Note == "" {
		return limit.Note{}, nil, errNoNote
	}
	counters := make([]limit.Counter, len(r.Counters))
	for i := range r.Counters {
		if counters[i], _, err = r.counter(i); err == nil {
			err = counters[i].Check()
		}
		if err != nil {
			return limit.Note{}, nil, fmt.Errorf("counter %s: %w", r.Counters[i].Key, err)
		}
	}
	return limit.Note{Name: r.Note, Number: number, At: time.UnixMicro(r.At).UTC()}, counters, nil
}
