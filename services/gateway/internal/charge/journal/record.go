package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Kinds of records, by their first byte. Those of requests in flight go on with
// the request's reference.
const (
	kindCharge = '{' // JSON: to be charged or given back
	kindBegun  = 'b' // reference, JSON: what is given back should the process die
	kindEnded  = 'e' // reference: what was charged stands
	kindBack   = 'r' // reference, JSON: ended, and given back
)

// reference names a request in flight: the number of the process and its own.
type reference struct{ process, n uint64 }

const referenceBytes = 1 + 16 // with the kind

func (r reference) put(kind byte, b []byte) {
	b[0] = kind
	binary.LittleEndian.PutUint64(b[1:], r.process)
	binary.LittleEndian.PutUint64(b[9:], r.n)
}

// split reads a record's kind, its reference, and the rest.
func split(b []byte) (kind byte, ref reference, body []byte) {
	switch {
	case len(b) == 0:
		return 0, ref, nil
	case b[0] == kindCharge || len(b) < referenceBytes:
		return b[0], ref, b
	}
	return b[0], reference{binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])}, b[referenceBytes:]
}

// record is one request's charges.
type record struct {
	At       int64         `json:"t"` // µs since the epoch
	Counters []limit.Saved `json:"c"`
}

// newRecord takes counters over, each as it is charged, but for those that
// nothing is taken from.
func newRecord(at time.Time, counters []limit.Counter) record {
	r := record{At: at.UnixMicro(), Counters: make([]limit.Saved, 0, len(counters))}
	for i := range counters {
		c := &counters[i]
		if c.Cost == 0 || c.Unlimited && !c.Algorithm.Quota() {
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
