package journal

import (
	"log/slog"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/spool"
)

// InFlight is a request whose charges may yet come back. The zero InFlight has
// none.
type InFlight struct{ n uint64 }

// Begin writes down what a request was charged and may have back, before it is
// forwarded: if this process is killed before the request's end is known, the next
// start gives it back. Counters have the costs that were charged, and count at the
// time given where they have no At. It never blocks on I/O and keeps nothing of its
// arguments. The request is to be ended with End or GiveBack.
func (j *Journal) Begin(at time.Time, counters []limit.Counter) InFlight {
	back := slices.Clone(counters)
	for i := range back {
		back[i].Cost = -back[i].Cost
	}
	body := newRecord(at, back).encode()
	if body == nil {
		return InFlight{}
	}
	j.appending.Lock()
	defer j.appending.Unlock()
	j.begun++
	j.open[j.begun] = struct{}{}
	j.put(kindBegun, j.begun, body)
	return InFlight{j.begun}
}

// End ends a request: what it was charged stands.
func (j *Journal) End(f InFlight) { j.end(f, kindEnded, nil) }

// GiveBack ends a request: of what it was charged these counters are given back,
// once, with costs below 0; a counter's own At goes before the time given. What it
// returned from survives a kill of the process.
func (j *Journal) GiveBack(f InFlight, at time.Time, counters []limit.Counter) {
	body := newRecord(at, counters).encode()
	switch {
	case f.n == 0:
		j.append(body)
	case body == nil:
		j.End(f)
	default:
		j.end(f, kindBack, body)
	}
}

func (j *Journal) end(f InFlight, kind byte, body []byte) {
	if f.n == 0 {
		return
	}
	j.appending.Lock()
	defer j.appending.Unlock()
	delete(j.open, f.n)
	j.put(kind, f.n, body)
}

// put appends a record of a request in flight. Who calls it holds appending.
func (j *Journal) put(kind byte, n uint64, body []byte) {
	j.scratch = append(j.scratch[:0], make([]byte, referenceBytes)...)
	reference{j.state.process, n}.put(kind, j.scratch)
	j.scratch = append(j.scratch, body...)
	_ = j.spool.Append(j.scratch) // drops are the spool's to count
}

// isOpen reports whether a request of this process is in flight.
func (j *Journal) isOpen(ref reference) bool {
	j.appending.Lock()
	defer j.appending.Unlock()
	_, open := j.open[ref.n]
	return open && ref.process == j.state.process
}

// held is the begun record of a request that was in flight when it was read.
type held struct {
	ref    reference
	before spool.Mark
	body   []byte
}

// hold keeps the begun records of a stretch whose requests are in flight.
func (j *Journal) hold(records []spool.Record) {
	for _, r := range records {
		if kind, ref, body := split(r.Value); kind == kindBegun && j.isOpen(ref) {
			j.held = append(j.held, held{ref, r.Before(), body})
		}
	}
}

// advance acknowledges what is settled, up to the first record of a request that
// is in flight. Where such requests hold up half of the journal, their records are
// appended once more.
func (j *Journal) advance(mark spool.Mark) {
	st := j.spool.Stats()
	full := st.PendingBytes > st.CapacityBytes/2
	for len(j.held) > 0 && (!j.isOpen(j.held[0].ref) || full && j.carry(j.held[0])) {
		j.held = j.held[1:]
	}
	if len(j.held) > 0 {
		mark = j.held[0].before
	} else {
		j.held = nil
	}
	j.spool.Advance(mark)
}

// carry appends the begun record of a request again, if it is in flight.
func (j *Journal) carry(h held) bool {
	j.appending.Lock()
	defer j.appending.Unlock()
	if _, open := j.open[h.ref.n]; open {
		j.put(kindBegun, h.ref.n, h.body)
	}
	return true
}

// giveBackOrphans gives back what requests were charged that were in flight when
// an earlier process died. Where the machine crashed their ends may be lost: then
// what they were charged stands.
func (j *Journal) giveBackOrphans(sameBoot bool) {
	orphans := map[reference][]byte{}
	for {
		records, _ := j.spool.Next(stretchRecords)
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			switch kind, ref, body := split(r.Value); kind {
			case kindBegun:
				orphans[ref] = body
			case kindEnded, kindBack:
				delete(orphans, ref)
			}
		}
	}
	j.spool.Rewind()
	for ref, body := range orphans {
		kind := byte(kindBack)
		if !sameBoot {
			kind, body = kindEnded, nil
			j.metrics.inflightUnknown.Inc()
		}
		b := make([]byte, referenceBytes, referenceBytes+len(body))
		ref.put(kind, b)
		_ = j.spool.Append(append(b, body...))
	}
	if len(orphans) > 0 {
		j.o.Log.Info("requests were in flight when the process before ended", "requests", len(orphans), "given back", sameBoot)
	}
}

// logLevel of a failure to settle: the breaker has said that the store is away.
func logLevel(unavailable bool) slog.Level {
	if unavailable {
		return slog.LevelDebug
	}
	return slog.LevelError
}
