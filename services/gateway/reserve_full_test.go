package gateway

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// A tenant that has as many open as it may is told so, and how to have another.
func TestTooManyOpenReservations(t *testing.T) {
	t.Parallel()
	r := newReservingOf(t, 2, 2)
	r.putRule(tokensQuota)
	r.send(0, "POST", "", chat("a", 10)).is(t, 201)
	r.send(1, "POST", "", chat("b", 10)).is(t, 201)
	for gate := range r.gates {
		a := r.send(gate, "POST", "", chat("c", 10))
		p := a.problem(t)
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); a.StatusCode != 429 || p.Type != reject.ReservationsFull || !strings.Contains(p.Detail, "has 2 reservations open") || err != nil || wait < 1 {
			t.Errorf("gate %d: %d %s %v", gate, a.StatusCode, a.body, a.Header)
		}
		if n := testutil.ToFloat64(r.gates[gate].gate.metrics.reservations[reservationFull]); n != 1 {
			t.Errorf("gate %d counts %v", gate, n)
		}
	}
	r.send(1, "POST", "", chat("a", 10)).is(t, 201) // a repeat
	r.send(0, "POST", "", chat("c", 10), "X-Tenant-Id", "globex").is(t, 201)
	if n := r.used(tokensCounter); n != 20 {
		t.Errorf("%d used", n)
	}
	r.send(1, "POST", "/a/commit", `{"cost":3}`).is(t, 200)
	r.send(0, "POST", "", chat("c", 10)).is(t, 201)
	r.send(0, "POST", "", chat("d", 10)).problem(t)
	r.wait(time.Minute)
	r.gates[0].gate.sweep(t.Context())
	r.send(1, "POST", "", chat("d", 10)).is(t, 201)
	if byID, units := r.told(); len(byID) != 9 || units[tokensCounter] != 13 {
		t.Errorf("%d events, %v", len(byID), units)
	}
}
