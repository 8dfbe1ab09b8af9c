package gateway

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// reservationsPath is where reservations are made; each has its own below it.
const reservationsPath = catalog.OwnPrefix + "v1/reservations"

// answerReservation tells how a reservation stands. decision is the id of the
// event that tells of its making, empty where it was not made just now.
func (g *gate) answerReservation(x *exchange, status int, decision string, r *reserve.Reservation) bool {
	h := x.w.Header()
	if x.recorded {
		g.setHeaders(x, h)
	}
	if decision != "" {
		h[respond.HeaderDecisionID] = []string{decision}
		h.Set("Location", reservationsPath+"/"+r.ID)
	}
	b := appendReservation(x.scratch[:0], r)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(b) // a client that went away is not our error
	x.scratch = b
	return false
}

func appendReservation(b []byte, r *reserve.Reservation) []byte {
	return append(appendStanding(append(b, '{'), r), '}', '\n')
}

// appendStanding writes the fields that say what a reservation is of, and how it
// stands.
func appendStanding(b []byte, r *reserve.Reservation) []byte {
	state := r.State
	if state == reserve.Void {
		state = reserve.Released
	}
	b = event.AppendString(append(b, `"id":`...), r.ID)
	b = event.AppendString(append(b, `,"state":`...), state.String())
	b = strconv.AppendInt(append(b, `,"reserved":`...), r.Cost, 10)
	if state == reserve.Committed {
		b = strconv.AppendInt(append(b, `,"committed":`...), r.Committed, 10)
	}
	b = event.AppendOptional(b, `,"service":`, r.Service)
	b = event.AppendOptional(b, `,"endpoint":`, r.Endpoint)
	b = event.AppendOptional(b, `,"method":`, r.Method)
	if r.At != 0 {
		b = appendMetrics(b, r.Charges)
		b = appendTime(b, `,"reservedAt":"`, r.ReservedAt())
		b = appendTime(b, `,"expiresAt":"`, r.ExpiresAt())
	}
	if !r.EndedAt.IsZero() {
		b = appendTime(b, `,"endedAt":"`, r.EndedAt)
	}
	return b
}

// appendMetrics says what the units are counted as: none where no rule that
// enforces asks for any, as of a path that was misspelt.
func appendMetrics(b []byte, charges []reserve.Charge) []byte {
	b = append(b, `,"metrics":[`...)
	for i := range charges {
		c := &charges[i]
		if c.Shadow || slices.ContainsFunc(charges[:i], func(d reserve.Charge) bool { return !d.Shadow && d.Metric == c.Metric }) {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = event.AppendString(b, c.Metric)
	}
	return append(b, ']')
}

func appendTime(b []byte, name string, t time.Time) []byte {
	return append(t.UTC().Truncate(time.Millisecond).AppendFormat(append(b, name...), event.TimeLayout), '"')
}
