package webhook

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	t.Parallel()
	var g guard
	for _, addr := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1",
		"198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fd12:3456::1", "ff02::1", "fec0::1", "100::1",
		"2001:db8::1", "2001::1", "3fff::1", "5f00::1", "64:ff9b:1::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:c0a8:101::1",
	} {
		if err := g.check(netip.MustParseAddr(addr)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s is reached", addr)
		}
		if err := g.control("tcp6", net.JoinHostPort(addr, "443"), nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s is dialled", addr)
		}
	}
	for _, addr := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8"} {
		if err := g.check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s is refused", addr)
		}
	}
	for _, at := range []string{"8.8.8.8", "example.com:443", ""} {
		if g.control("tcp4", at, nil) == nil {
			t.Errorf("%q is dialled", at)
		}
	}
	if g.control("unix", "/tmp/socket", nil) == nil {
		t.Error("a unix socket is dialled")
	}
}

func TestAllowedRangesAreReached(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Allow: []string{"10.1.0.0/16", "fd00::/8", "::ffff:10.2.0.0/120"}, Timeout: time.Second, GiveUpAfter: time.Hour}, nil)
	if err == nil {
		for _, addr := range []string{"10.1.2.3", "::ffff:10.1.2.3", "fd00::1"} {
			if err := s.guard.check(netip.MustParseAddr(addr)); err != nil {
				t.Errorf("%s: %v", addr, err)
			}
		}
		if s.guard.check(netip.MustParseAddr("10.3.0.1")) == nil {
			t.Error("10.3.0.1 is in no allowed range")
		}
		return
	}
	t.Fatal(err)
}

func TestURLsThatNoWebhookMayHave(t *testing.T) {
	t.Parallel()
	s, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		"http://example.com/x": "https", "ftp://example.com": "https", "example.com": "URL", "https://": "URL", "https:opaque": "URL", "": "URL",
		"https://u:p@example.com": "user and password", "https://example.com/#x": "fragment", "https://127.0.0.1/": "public", "https://[::1]:8443/": "public",
		"https://169.254.169.254/latest": "public", "https://localhost/": "this host", "https://a.localhost/": "this host", "https://[fe80::1%25eth0]/": "public",
	} {
		if err := s.CheckURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"https://example.com/hooks?token=x", "https://example.com:8443", "https://8.8.8.8/"} {
		if err := s.CheckURL(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A name may lead anywhere, and elsewhere than when it was checked: the address
// is judged as it is dialled.
func TestNameThatLeadsInsideIsRefusedWhenItIsDialled(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	res, err := s.client.Get("http://localhost:" + port) // past CheckURL, as a name that changes is
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, ErrRefused) || connections.Load() != 0 {
		t.Fatalf("err %v, %d connections", err, connections.Load())
	}
}

// open is a sender that may reach the tests' own servers.
func open(t *testing.T, timeout time.Duration) *Sender {
	t.Helper()
	s, err := New(Config{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true, Timeout: timeout, GiveUpAfter: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestAnswersAreBoundedAndRedirectsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", 1<<20))) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/target", func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() })
	mux.HandleFunc("/odd", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410); _, _ = w.Write([]byte("a\xff\x00b")) })
	server := httptest.NewServer(mux)
	defer server.Close()
	send := func(path string, timeout time.Duration) Answer {
		return open(t, timeout).Send(t.Context(), server.URL+path+"?token=hidden", []service.Secret{NewSecret()}, Message{ID: "1", ContentType: "text/plain", Body: []byte("x")})
	}
	if a := send("/long", time.Minute); !a.Delivered() || len(a.Body) != maxAnswer || a.Reason() != "" {
		t.Errorf("long: %d, %d bytes, %s", a.Status, len(a.Body), a.Reason())
	}
	if a := send("/away", time.Minute); a.Status != 307 || a.Delivered() || followed.Load() || !strings.Contains(a.Reason(), "redirect") {
		t.Errorf("away: %+v, followed %v", a, followed.Load())
	}
	if a := send("/header", time.Minute); a.Err == nil || a.Status != 0 {
		t.Errorf("header: %+v", a)
	}
	if a := send("/never", 50*time.Millisecond); a.Status != 0 || a.Reason() != "no answer in time" {
		t.Errorf("never: %+v", a)
	}
	if a := send("/odd", time.Minute); !a.Gone() || a.Body != "a\uFFFD\uFFFDb" {
		t.Errorf("odd: %+v", a)
	}
	server.Close()
	if a := send("/long", time.Minute); a.Err == nil || strings.Contains(a.Reason(), "hidden") {
		t.Errorf("nobody there: %v", a.Err)
	}
}
