package keeper

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// What is known of a reservation is the same in any order of its events, with any
// of them twice: the newest attempt's furthest.
func TestReservationsFoldInAnyOrder(t *testing.T) {
	t.Parallel()
	made := func(attempt int64) usage.Event {
		return usage.Event{TenantID: "a", Reservation: "r", ReservationState: &usage.ReservationState{Attempt: attempt, State: 1, Record: "{}", Uncharged: []int64{2}}}
	}
	ended := func(attempt, state int64) usage.Event {
		return usage.Event{TenantID: "a", Reservation: "r", ReservationState: &usage.ReservationState{Attempt: attempt, State: state, EndedAt: attempt + 5}}
	}
	events := []usage.Event{made(10), ended(10, 45), made(20), ended(20, 2)}
	want := reserve.Kept{Tenant: "a", ID: "r", Attempt: 20, Number: 2, EndedAt: 25, Record: []byte("{}"), Uncharged: []int{2}}
	rapid.Check(t, func(t *rapid.T) {
		twice := rapid.SliceOf(rapid.SampledFrom(events)).Draw(t, "duplicates")
		f := newFold()
		for _, e := range rapid.Permutation(append(append([]usage.Event(nil), events...), twice...)).Draw(t, "order") {
			if bad := f.event(e, noon); bad != 0 {
				t.Fatalf("refused %+v", e)
			}
		}
		if got := f.takeReservations(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("%+v", got)
		}
	})
}

func TestBadReservationsAreNotFolded(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]usage.Event{
		"no attempt": {TenantID: "a", Reservation: "r", ReservationState: &usage.ReservationState{State: 1}},
		"no state":   {TenantID: "a", Reservation: "r", ReservationState: &usage.ReservationState{Attempt: 1}},
		"bad id":     {TenantID: "a", Reservation: "a b", ReservationState: &usage.ReservationState{Attempt: 1, State: 1}},
		"NUL":        {TenantID: "a\x00", Reservation: "r", ReservationState: &usage.ReservationState{Attempt: 1, State: 1}},
	} {
		f := newFold()
		if bad := f.event(e, noon); bad != 1 || len(f.takeReservations()) != 0 {
			t.Errorf("%s: %d bad", name, bad)
		}
	}
}
