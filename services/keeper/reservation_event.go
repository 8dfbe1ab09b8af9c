package keeper

import (
	"strings"

	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// reservationKey is whose reservation, and which.
type reservationKey struct{ tenant, id string }

// maxRecordBytes is far above what a record of libs/reserve has.
const maxRecordBytes = 256 << 10

// reservationOf is what an event says of a reservation, false where it says
// nothing, or nothing that a gateway says.
func reservationOf(e *usage.Event) (reserve.Kept, bool) {
	s := e.ReservationState
	if s == nil || s.Attempt < 1 || s.State < 1 || s.EndedAt < 0 || len(s.Record) > maxRecordBytes || !reserve.ValidID(e.Reservation) ||
		strings.ContainsRune(e.TenantID+s.Record, 0) {
		return reserve.Kept{}, false
	}
	k := reserve.Kept{Tenant: e.TenantID, ID: e.Reservation, Attempt: s.Attempt, Number: s.State, EndedAt: s.EndedAt, Record: []byte(s.Record)}
	for _, place := range s.Uncharged {
		if place >= 0 && place < 1<<16 {
			k.Uncharged = append(k.Uncharged, int(place))
		}
	}
	return k, true
}

// further takes in what another event says of a reservation: the newest attempt
// holds, and of one the furthest it has come to. The order does not matter.
func further(a, b reserve.Kept) reserve.Kept {
	switch {
	case a.Attempt > b.Attempt:
		return a
	case a.Attempt < b.Attempt:
		return b
	}
	a.Number, a.EndedAt = max(a.Number, b.Number), max(a.EndedAt, b.EndedAt)
	if len(a.Record) == 0 {
		a.Record = b.Record
	}
	if len(b.Uncharged) > len(a.Uncharged) {
		a.Uncharged = b.Uncharged
	}
	return a
}
