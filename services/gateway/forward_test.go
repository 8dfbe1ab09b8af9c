package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

func TestAnswersPassWholeWithTheDecisionsHeaders(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Sluice-Degraded", "spoof")
		w.Header().Set("Sluice-Decision-Id", "spoof")
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Own", "1")
		w.Header().Set("Vary", "X-Tenant-Id")
		w.WriteHeader(http.StatusTeapot)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s", r.Host, body)
		w.Header().Set("X-Sum", "42")
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.front.URL+"/demo/x", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if vary := strings.Join(res.Header["Vary"], ", "); vary != "X-Tenant-Id, Authorization, X-Api-Key" {
		t.Errorf("Vary is %s", vary)
	}
	host := strings.TrimPrefix(s.upstream.URL, "http://")
	if res.StatusCode != http.StatusTeapot || string(body) != host+" hello" || res.Trailer.Get("X-Sum") != "42" || res.Header.Get("X-Own") != "1" {
		t.Errorf("%d %q trailer %v", res.StatusCode, body, res.Trailer)
	}
	e := s.event()
	if e.StatusCode != http.StatusTeapot || e.Method != http.MethodPost || e.Decision != "ALLOW" || e.Gateway != "gw-test" {
		t.Errorf("event %+v", e)
	}
	if got := res.Header.Values(respond.HeaderDecisionID); len(got) != 1 || got[0] != e.ID || res.Header.Get("Sluice-Degraded") != "" {
		t.Errorf("headers %v, event id %s", res.Header, e.ID)
	}
	if got := s.last().Header.Get("X-Forwarded-Host"); got != strings.TrimPrefix(s.front.URL, "http://") {
		t.Errorf("X-Forwarded-Host is %q", got)
	}
}

// The event is there before the client sees the answer's header.
func TestEventIsRecordedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.front.URL+"/demo/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.ID != res.Header.Get(respond.HeaderDecisionID) || e.StatusCode != 200 {
		t.Errorf("event %+v, header %v", e, res.Header)
	}
	close(release)
	_ = res.Body.Close()
}

func TestStreamsFlow(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-next // the client has read it
		}
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.front.URL+"/demo/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("read %q, %v", line, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
}

func TestUpgradesPass(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			t.Errorf("upstream got %v", r.Header)
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, err := buffered.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(conn, "echo "+line)
	}})
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /demo/socket HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", res, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("read %q, %v", line, err)
	}
	if e := s.event(); e.StatusCode != http.StatusSwitchingProtocols || res.Header.Get(respond.HeaderDecisionID) != e.ID {
		t.Errorf("event %+v", e)
	}
}

// Another protocol would be a tunnel past all rules. Whatever a service makes of
// the offer, it does not hear of it, and the client gets an ordinary answer.
func TestUpgradesToOtherProtocolsAreIgnored(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, r *http.Request) {
		if to := r.Header.Get("Upgrade"); to != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", to)
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	}})
	for name, fields := range map[string]string{
		"h2c":                  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"settings not named":   "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"in other letters":     "Connection: uPGRADE\r\nupgrade: H2C\r\n",
		"offered before":       "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n",
		"offered beside":       "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
		"not named":            "Upgrade: h2c\r\n",
		"of no characters":     "Connection: Upgrade\r\nUpgrade: \xff\r\n",
		"another one":          "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n",
		"a later WebSocket":    "Connection: Upgrade\r\nUpgrade: websocket/2\r\n",
		"websocket, not named": "Upgrade: websocket\r\n",
	} {
		conn := dial(t, s, "GET /demo/x HTTP/1.1\r\nHost: gate\r\n"+fields+"\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		up := s.last().Header
		if res.StatusCode != http.StatusOK || up["Upgrade"] != nil || up["Http2-Settings"] != nil || up["Connection"] != nil {
			t.Errorf("%s: %d, the service got %v", name, res.StatusCode, up)
		}
		if e := s.event(); e.StatusCode != http.StatusOK {
			t.Errorf("%s: event %+v", name, e)
		}
	}
	s.mustBlameTheClient()
}

func TestUpstreamThatFailsIs502(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	s := newStand(t, standOptions{catalog: []catalog.Service{
		{Name: "dead", Prefix: "/dead/", Upstreams: []catalog.Upstream{{URL: dead.URL}}}, {Name: "demo", Prefix: "/demo/"},
	}, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }})
	for _, path := range []string{"/dead/x", "/demo/x"} {
		a := do(t, http.MethodPost, s.front.URL+path)
		p := a.problem(t)
		e := s.event()
		if a.StatusCode != http.StatusBadGateway || e.StatusCode != http.StatusBadGateway || e.Decision != "ALLOW" || p.DecisionID != e.ID {
			t.Errorf("%s: %d %s, event %+v", path, a.StatusCode, a.body, e)
		}
		if strings.Contains(a.body, "127.0.0.1") {
			t.Errorf("the answer tells where the upstream is: %s", a.body)
		}
	}
}

func TestUpstreamThatIsSlowIs504(t *testing.T) {
	t.Parallel()
	config := DefaultConfig().Upstream
	config.ResponseTimeout = 20 * time.Millisecond
	s := newStand(t, standOptions{upstream: config, handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	a := s.get("/demo/x")
	a.problem(t)
	if e := s.event(); a.StatusCode != http.StatusGatewayTimeout || e.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%d %s, event %+v", a.StatusCode, a.body, e)
	}
}

func TestClientThatGoesAwayIsRecordedOnce(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	s := newStand(t, standOptions{handler: func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+"/demo/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		_ = res.Body.Close()
		t.Fatalf("answered %d", res.StatusCode)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.gate.inFlight.Load() > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the request is still under way")
		}
	}
	if e := s.event(); e.StatusCode != 499 || e.Decision != "ALLOW" {
		t.Errorf("event %+v", e)
	}
}

// An upstream that dies in the middle of its answer must not look like one
// that ended it.
func TestBrokenAnswerIsBrokenForTheClientToo(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.front.URL+"/demo/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q without an error", body)
	}
	if e := s.event(); e.StatusCode != 200 {
		t.Errorf("event %+v", e)
	}
}

func TestUpstreamBaseIsKept(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	s.putService(catalog.Service{Name: "based", Prefix: "/b/", StripPrefix: true, Upstreams: []catalog.Upstream{{URL: s.upstream.URL + "/api%2Fv1/"}}})
	s.get("/b/x%2Fy?q=1")
	if got := s.last().RequestURI; got != "/api%2Fv1/x%2Fy?q=1" {
		t.Errorf("arrives as %s", got)
	}
}
