package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// An answer to HEAD about the stored body makes it fresh again and changes its
// fields, one about another body makes it stale (RFC 9111, section 4.3.5).
func TestHeadUpdatesWhatIsStored(t *testing.T) {
	t.Parallel()
	const get, head, hourAgo = http.MethodGet, http.MethodHead, "Wed, 15 Jul 2026 11:00:00 GMT"
	for name, c := range map[string]struct {
		get, head []string // what the service says
		status    int      // to HEAD; 0 is 200
		updated   bool
	}{
		"same tag":                  {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Cache-Control", "max-age=60"}, updated: true},
		"same date":                 {get: []string{"Last-Modified", hourAgo}, head: []string{"Last-Modified", hourAgo, "Cache-Control", "max-age=60"}, updated: true},
		"same tag and length":       {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Content-Length", "1", "Cache-Control", "max-age=60"}, updated: true},
		"other tag":                 {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"b"`, "Cache-Control", "max-age=60"}},
		"same tag, other length":    {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Content-Length", "9", "Cache-Control", "max-age=60"}},
		"other date":                {get: []string{"Last-Modified", hourAgo}, head: []string{"Last-Modified", "Wed, 15 Jul 2026 11:59:00 GMT", "Cache-Control", "max-age=60"}},
		"nothing to tell bodies by": {head: []string{"Cache-Control", "max-age=60"}},
		"same length alone":         {head: []string{"Content-Length", "1", "Cache-Control", "max-age=60"}},
		"not to be stored any more": {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Cache-Control", "no-store"}},
		"gone":                      {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Cache-Control", "max-age=60"}, status: 410},
		"tag that GET did not have": {head: []string{"ETag", `"a"`, "Cache-Control", "max-age=60"}},
		"fresh for no time":         {get: []string{"ETag", `"a"`}, head: []string{"ETag", `"a"`, "Cache-Control", "max-age=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{}, nil)
			s.script(func(w http.ResponseWriter, r *http.Request) {
				fields, status := append(cc("max-age=10"), c.get...), http.StatusOK
				w.Header().Set("X-Kept", "get")
				if r.Method == head {
					fields, status = c.head, max(c.status, http.StatusOK)
					w.Header().Del("X-Kept")
				}
				w.Header().Set("X-Last", r.Method)
				for i := 0; i < len(fields); i += 2 {
					w.Header().Set(fields[i], fields[i+1])
				}
				if r.Header.Get("If-None-Match") == `"a"` && r.Method == get {
					status = http.StatusNotModified
				}
				w.WriteHeader(status)
			})
			s.get("/demo/a")
			s.clock.advance(11 * time.Second)
			a := do(t, head, s.front.URL+"/demo/a")
			if n := s.asked.Load(); n != 2 || len(a.Header["Cache-Status"]) != 1 {
				t.Fatalf("asked %d times, %v", n, a.Header)
			}
			if c.updated && (a.Header.Get("X-Kept") != "get" || a.Header.Get("X-Last") != head || !strings.Contains(a.Header.Get("Cache-Status"), "fwd=stale; fwd-status=200; stored")) {
				t.Errorf("HEAD is answered %v, want what is stored and what it brought", a.Header)
			}
			s.clock.advance(time.Second)
			asked := s.asked.Load()
			again := s.get("/demo/a")
			if fromStore := s.asked.Load() == asked; fromStore != c.updated {
				t.Errorf("GET is answered from the store: %v, want %v: %v", fromStore, c.updated, again.Header)
			}
			if c.updated && (again.Header.Get("X-Last") != head || again.Header.Get("X-Kept") != "get") {
				t.Errorf("stored is %v", again.Header)
			}
		})
	}
}

// Where another variant's tag is the one of this request's answer too, the
// service need not send the body again (RFC 9111, section 4.1).
func TestVariantsConfirmEachOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tags [2]string // by X-A
		body string    // of the second
		says string    // to the second, if it is 304: its tag
	}{
		"same body":                       {tags: [2]string{`"a"`, `"a"`}, body: "1", says: `"a"`},
		"same body, tag not said":         {tags: [2]string{`"a"`, `"a"`}, body: "1"},
		"other body":                      {tags: [2]string{`"a"`, `"b"`}, body: "2"},
		"weak tags prove no body":         {tags: [2]string{`W/"a"`, `W/"a"`}, body: "2"},
		"304 of another tag: asked again": {tags: [2]string{`"a"`, `"a"`}, body: "3", says: `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCacheStand(t, catalog.Cache{}, nil)
			s.script(func(w http.ResponseWriter, r *http.Request) {
				tag := c.tags[0]
				if r.Header.Get("X-A") == "2" {
					tag = c.tags[1]
				}
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Vary", "X-A")
				if r.Header.Get("If-None-Match") != tag {
					w.Header().Set("ETag", tag)
					return
				}
				if c.says != "" {
					w.Header().Set("ETag", c.says)
				}
				w.WriteHeader(http.StatusNotModified)
			})
			s.get("/demo/a", "X-A", "1")
			if a := s.get("/demo/a", "X-A", "2"); a.body != c.body || a.Header.Get("ETag") != c.tags[1] && c.says != `"x"` {
				t.Errorf("the other variant is %q, want %q: %v", a.body, c.body, a.Header)
			}
			asked := s.asked.Load()
			for _, v := range []string{"1", "2", "1"} {
				s.get("/demo/a", "X-A", v)
			}
			if n := s.asked.Load(); n != asked {
				t.Errorf("asked %d times more: both are stored", n-asked)
			}
		})
	}
}
