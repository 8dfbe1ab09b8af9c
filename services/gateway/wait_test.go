package gateway

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// Ten thousand clients denied until six come back spread over half a minute
// behind it, about as many every second, and nobody before it.
func TestDeniedClientsComeBackSpread(t *testing.T) {
	t.Parallel()
	const clients = 10_000
	at := time.Date(2026, 7, 15, 17, 50, 0, 0, time.UTC)
	s := newStand(t, standOptions{now: func() time.Time { return at }, trusted: []string{"192.0.2.0/24"}, answers: DefaultConfig().Answers})
	s.putRule(ruleJSON("one", "tenant", "calls", `{"algorithm":"fixedWindow","limit":1,"window":"1h"}`, ""))
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/demo/x", nil)
		r.Header.Set("X-Tenant-Id", "acme")
		w := httptest.NewRecorder()
		s.gate.ServeHTTP(w, r)
		return w
	}
	if first := ask(); first.Code != http.StatusOK {
		t.Fatal(first.Code, first.Body)
	}
	perSecond := map[int]int{}
	for range clients {
		w := ask()
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err != nil || w.Code != http.StatusTooManyRequests {
			t.Fatal(w.Code, w.Header(), err)
		}
		perSecond[wait]++
	}
	const reset, spread = 600, 30
	for wait, n := range perSecond {
		if wait < reset || wait > reset+spread {
			t.Errorf("%d clients come after %d s, the counter resets after %d", n, wait, reset)
		}
	}
	for wait := reset; wait <= reset+spread; wait++ {
		// 323 expected, standard deviation 18.
		if n := perSecond[wait]; n < 200 || n > 450 {
			t.Errorf("%d of %d clients come in second %d", n, clients, wait)
		}
	}
}
