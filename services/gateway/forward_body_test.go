package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// dial opens a connection to the gate and writes the beginning of a request.
func dial(t *testing.T, s *stand, text string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// nextEvent waits for the event of a request whose answer nobody reads.
func (s *stand) nextEvent() usage.Event {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if all := s.events(); len(all) > 0 {
			return all[0]
		}
	}
	s.t.Fatal("no event was recorded")
	return usage.Event{}
}

// readsAll is an upstream that answers after the whole body.
func readsAll(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // that it breaks off is what is tested
}

// waitForRequest waits until the gate has read a request's header.
func (s *stand) waitForRequest() {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.gate.inFlight.Load() == 0; <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatal("no request is under way")
		}
	}
}

func (s *stand) mustBlameTheClient() {
	s.t.Helper()
	if n := testutil.ToFloat64(s.gate.metrics.upstreamErrors); n != 0 {
		s.t.Errorf("%v errors of the upstream are counted", n)
	}
	if strings.Contains(s.log.String(), "upstream failed") {
		s.t.Errorf("the log blames the upstream: %s", s.log)
	}
}

func TestBodyThatIsCutOffIsTheClientsDoing(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"length":  "Content-Length: 1000000\r\n\r\nabc",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"chunk":   "Transfer-Encoding: chunked\r\n\r\nff\r\nabc",
	} {
		for _, reset := range []bool{true, false} {
			s := newStand(t, standOptions{handler: readsAll})
			conn := dial(t, s, "POST /demo/x HTTP/1.1\r\nHost: gate\r\n"+begin)
			s.waitForRequest()
			if reset {
				if err := conn.SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if e := s.nextEvent(); e.StatusCode != 499 || e.Decision != "ALLOW" {
				t.Errorf("%s, reset %v: event %+v", name, reset, e)
			}
			s.mustBlameTheClient()
		}
	}
}

func TestBodyThatBreaksTheProtocolIs400(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: readsAll})
	for _, chunks := range []string{"ZZ\r\nabc\r\n", "3\r\nabc\r\nZZ\r\n", "3\r\nabcXX\r\n"} {
		conn := dial(t, s, "POST /demo/x HTTP/1.1\r\nHost: gate\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		e := s.event()
		if res.StatusCode != http.StatusBadRequest || e.StatusCode != http.StatusBadRequest || e.Decision != "ALLOW" || !res.Close {
			t.Errorf("%q: %d %s, close %v, event %+v", chunks, res.StatusCode, body, res.Close, e)
		}
		if p := (answer{res, string(body)}).problem(t); p.DecisionID != e.ID || res.Header.Get(respond.HeaderDecisionID) != e.ID {
			t.Errorf("%q: %s of decision %s", chunks, body, e.ID)
		}
	}
	s.mustBlameTheClient()
}

// A whole body arrives whole, however it is framed.
func TestBodiesArriveWhole(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %v", n, err)
	}})
	const size = 300_000
	for _, body := range []io.Reader{strings.NewReader(strings.Repeat("b", size)), io.LimitReader(endless{}, size)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.front.URL+"/demo/x", body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(said) != fmt.Sprintf("%d <nil>", size) {
			t.Errorf("%d arrived: %s, %v", res.StatusCode, said, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
