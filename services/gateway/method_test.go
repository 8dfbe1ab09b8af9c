package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// The port is the gate's alone: what asks for a tunnel or for a server as a
// whole is refused by it, without a decision.
func TestTunnelsAndServersAreNotOffered(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	web := newServer(DefaultConfig(), s.gate, s.gate.log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- web.serve(l)(ctx) }()
	for line, want := range map[string]struct {
		status int
		allow  bool
	}{
		"CONNECT /demo/x":      {http.StatusMethodNotAllowed, true},
		"CONNECT example.com:": {http.StatusMethodNotAllowed, true},
		"get /demo/x":          {http.StatusBadRequest, false},
		"Post /demo/x":         {http.StatusBadRequest, false},
		"connect /demo/x":      {http.StatusBadRequest, false},
		"OPTIONS *":            {http.StatusNotFound, false},
		"GET *":                {http.StatusNotFound, false},
		"OPTIONS /demo/x":      {http.StatusOK, false},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		_, decided := res.Header[respond.HeaderDecisionID]
		if res.StatusCode != want.status || (res.Header.Get("Allow") != "") != want.allow || decided != (want.status == http.StatusOK) {
			t.Errorf("%s: %d %v, want %d", line, res.StatusCode, res.Header, want.status)
		}
		if strings.Contains(res.Header.Get("Allow"), http.MethodConnect) {
			t.Errorf("%s: allows %s", line, res.Header.Get("Allow"))
		}
		_ = conn.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e := s.event(); e.Method != http.MethodOptions || len(s.requests()) != 1 {
		t.Errorf("event %+v, %d requests", e, len(s.requests()))
	}
}

func TestMethodsInOtherLettersAreNotTheirs(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"GET": false, "get": true, "gET": true, "Patch": true, "PROPFIND": false, "propfind": false, "m-search": false, "": false,
	} {
		if got := routing.WrongCase(method); got != want {
			t.Errorf("%q: %t", method, got)
		}
	}
}
