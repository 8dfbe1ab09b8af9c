package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// judge remembers the path that rules were asked for.
type judge struct {
	matcher
	mu   sync.Mutex
	path string
}

func (j *judge) Match(req *rule.Request, dst []rule.Match) []rule.Match {
	j.mu.Lock()
	j.path = req.Path
	j.mu.Unlock()
	return j.matcher.Match(req, dst)
}

func (j *judge) take() (path string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	path, j.path = j.path, ""
	return path
}

// targetStand has a service at the root whose answers say what was asked of it
// and are stored for everybody: a target that is forwarded as another than it
// was judged as, or stored under another's key, shows in a body.
func targetStand(t *testing.T) (s *stand, address string, j *judge) {
	t.Helper()
	s = newStand(t, standOptions{
		catalog: []catalog.Service{{Name: "root", Prefix: "/", Cache: &catalog.Cache{Shared: true}}},
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, r.RequestURI) // a client that is gone is no failure
		},
	})
	j = &judge{matcher: s.gate.rules}
	s.gate.rules = j
	return s, s.serveOn(t), j
}

// Only a path, and in HTTP/1 a URL of a host, can be held against rules; what
// else net/url reads is 400, and neither forwarded nor stored.
func TestTargetsThatAreNoPathAreRefused(t *testing.T) {
	t.Parallel()
	s, address, j := targetStand(t)
	const refused = ""
	for _, c := range []struct{ target, host, http1, http2 string }{
		{"/", "gate", "/", "/"},
		{"/demo/hello?a=b", "gate", "/demo/hello?a=b", "/demo/hello?a=b"},
		{"/x?", "gate", "/x", "/x"},
		{"//up/demo", "gate", "/up/demo", "/up/demo"},
		{"/x:http://up/y", "gate", "/x:http:/up/y", "/x:http:/up/y"},
		{"http://up/demo/./hello", "gate", "/demo/hello", refused},
		{"HTTPS://up:8443/y", "gate", "/y", refused},
		{"http://up", "gate", "/", refused},
		{"http://up?q", "gate", "/?q", refused},
		{"x:http://up/demo/hello", "gate", refused, refused},
		{"x:/demo/hello", "gate", refused, refused},
		{"x:*", "gate", refused, refused},
		{"x:", "gate", refused, refused},
		{"x:?q", "gate", refused, refused},
		{"http:demo/hello", "gate", refused, refused},
		{"http:/demo/hello", "gate", refused, refused},
		{"http:///demo/hello", "gate", refused, refused},
		{"http:", "gate", refused, refused},
		{"ftp://up/demo", "gate", refused, refused},
		{"http://user:pw@up/demo", "gate", refused, refused},
		{"http://[::1%25%20x]/demo", "gate", refused, refused},
		{"http://a%22b/demo", "gate", refused, refused},
		{"up:80", "gate", refused, refused},
		{"127.0.0.1:80", "gate", refused, refused},
		{"up", "gate", refused, refused},
		{"?q", "gate", refused, refused},
		{"/y", "gate /x?", refused, refused},
		{"/y", "gate/x", refused, refused},
		{"/y", "u@gate", refused, refused},
	} {
		for version, send := range map[string]func(address, target, host string) (sent, error){"1.1": rawHTTP1, "2": rawHTTP2} {
			want := c.http1
			if version == "2" {
				want = c.http2
			}
			before := len(s.requests())
			got, err := send(address, c.target, c.host)
			if err != nil {
				t.Fatalf("HTTP/%s %s of %s: %v", version, c.target, c.host, err)
			}
			path, _, _ := strings.Cut(want, "?")
			switch judged := j.take(); {
			case want == refused && (got.status != http.StatusBadRequest && got.status != 0 || len(s.requests()) != before || judged != ""):
				t.Errorf("HTTP/%s %s of %s is not refused: %+v, judged as %q", version, c.target, c.host, got, judged)
			case want != refused && (got != sent{http.StatusOK, want} || judged != path):
				t.Errorf("HTTP/%s %s of %s: %+v, judged as %q, want %s", version, c.target, c.host, got, judged, want)
			}
		}
	}
	if root := s.get("/"); root.body != "/" {
		t.Errorf("GET / is answered with what %s gave", root.body)
	}
}

// However a target is put together, what the service is asked for, and what is
// stored under the target's key, is what was judged.
func TestWhatIsForwardedIsWhatWasJudged(t *testing.T) {
	t.Parallel()
	s, address, j := targetStand(t)
	piece := rapid.SampledFrom([]string{
		"/", "//", "/.", "/..", "x", "x:", "http:", "http://", "HTTP://up", "up", "up:80", "u@", "*", "%2F", "%2e", "%", "?", "?q", "#", "&", ";", ":", "[::1]", "[", "\\", "%00", "%20", "ü",
	})
	rapid.Check(t, func(t *rapid.T) {
		target := strings.Join(rapid.SliceOfN(piece, 1, 7).Draw(t, "pieces"), "")
		send := rapid.SampledFrom([]func(address, target, host string) (sent, error){rawHTTP1, rawHTTP2}).Draw(t, "send")
		before := len(s.requests())
		got, err := send(address, target, "gate")
		if err != nil {
			t.Fatal(err)
		}
		_, query, _ := strings.Cut(target, "?")
		judged := j.take()
		want := judged
		if query != "" {
			want += "?" + query
		}
		switch {
		case got.status == http.StatusOK:
			if got.body != want || judged == "" {
				t.Fatalf("%q is judged as %q and answered as %q", target, judged, got.body)
			}
		case len(s.requests()) != before || judged != "" || got.status != 0 && got.status != http.StatusBadRequest && got.status != http.StatusNotFound:
			t.Fatalf("%q: %+v, judged as %q", target, got, judged)
		}
	})
}
