package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func TestListsOfPathsAreRead(t *testing.T) {
	t.Parallel()
	list := "# of the shop\n/shop/a?x=1\n\n  shop.example/shop/b \n/shop/a?x=1\n/shop/%20c\n"
	got, err := readTargets(writeFile(t, t.TempDir(), "paths.txt", list), nil)
	want := []warmTarget{{path: "/shop/a?x=1"}, {host: "shop.example", path: "/shop/b"}, {path: "/shop/%20c"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v %v, want %v", got, err, want)
	}
	if got, err = readTargets("-", strings.NewReader(list)); err != nil || !slices.Equal(got, want) {
		t.Errorf("from standard input: %v %v", got, err)
	}
}

func TestMistakesInListsAreNamed(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"https://shop.example/a": "leave out the scheme",
		"shop":                   "it holds no /",
		"/a b":                   "it holds blanks",
		"/a#top":                 "what follows # is never sent",
		"shop?x=/a":              "is no host",
		"user@shop/a":            "is no host",
		"//shop/a":               "it is no path",
		"/%zz":                   "it is no path",
	} {
		_, err := readTargets("-", strings.NewReader("/good\n"+line+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "standard input: line 2: must be /path?query or host/path?query, not ") || !strings.HasSuffix(err.Error(), says) && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want …%s…", line, err, says)
		}
	}
	if _, err := readTargets("-", strings.NewReader("# nothing\n")); err == nil || !strings.Contains(err.Error(), "holds no path") {
		t.Errorf("an empty list: %v", err)
	}
	if _, err := readTargets("/nowhere/paths", nil); err == nil || !strings.Contains(err.Error(), "/nowhere/paths") {
		t.Errorf("a missing list: %v", err)
	}
}

func TestHottestPathsAreThoseAnsweredMostOften(t *testing.T) {
	t.Parallel()
	var events []usage.Event
	asked := func(times int, change func(*usage.Event)) {
		e := usage.Event{Service: "shop", Method: http.MethodGet, Decision: usage.DecisionAllow, StatusCode: 200}
		change(&e)
		events = append(events, slices.Repeat([]usage.Event{e}, times)...)
	}
	asked(3, func(e *usage.Event) { e.Endpoint = "/shop/warm" })
	asked(2, func(e *usage.Event) { e.Endpoint = "/shop/exact/{$}" })
	asked(7, func(e *usage.Event) { e.Endpoint = "/shop/item/{id}" })
	asked(1, func(e *usage.Event) { e.Endpoint = "/shop/cool/{id}" })
	asked(2, func(e *usage.Event) { e.Endpoint, e.StatusCode = "/shop/304", 304 })
	asked(1, func(e *usage.Event) { e.Endpoint = "/shop/tepid" })
	asked(9, func(e *usage.Event) { e.Endpoint, e.Method = "/shop/post", http.MethodPost })
	asked(9, func(e *usage.Event) { e.Endpoint, e.StatusCode = "/shop/none", 404 })
	asked(9, func(e *usage.Event) { e.Endpoint, e.Decision = "/shop/denied", usage.DecisionDeny })
	asked(9, func(e *usage.Event) { e.Endpoint, e.Service = "/bank/x", "bank" })
	q := hottest{top: 3, service: "shop"}
	targets, patterns := q.count(events)
	if want := []warmTarget{{path: "/shop/warm"}, {path: "/shop/304"}, {path: "/shop/exact/"}}; !slices.Equal(targets, want) {
		t.Errorf("hottest %v, want %v", targets, want)
	}
	if !slices.Equal(patterns, []string{"/shop/item/{id}"}) {
		t.Errorf("patterns %v: one that is colder than the coldest path is no loss", patterns)
	}
}

// gatewayStub answers as a test says, in the bubble's time, and knows when it was asked.
type gatewayStub struct {
	answer func(n int, r *http.Request) (status int, cacheStatus string, after time.Duration)

	mu       sync.Mutex
	asked    []time.Time
	paths    []string
	underWay int
	most     int
}

// RoundTrip implements http.RoundTripper.
func (g *gatewayStub) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	n := len(g.asked)
	g.asked = append(g.asked, time.Now())
	g.paths = append(g.paths, r.Host+r.URL.RequestURI())
	g.underWay++
	g.most = max(g.most, g.underWay)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.underWay--
	}()
	status, told, after := g.answer(n, r)
	select {
	case <-time.After(after):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	res := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}
	if told != "" {
		res.Header.Set("Cache-Status", told)
	}
	return res, nil
}

func stubWarming(g *gatewayStub, rate float64, parallel, maxErrors int) *warming {
	return &warming{
		base: "http://gw", rate: rate, parallel: parallel, maxErrors: maxErrors, header: http.Header{},
		client: &http.Client{Transport: g}, now: time.Now,
	}
}

func numbered(n int) (targets []warmTarget) {
	for i := range n {
		targets = append(targets, warmTarget{path: fmt.Sprintf("/%03d", i)})
	}
	return targets
}

func stored(int, *http.Request) (int, string, time.Duration) {
	return 200, "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=60", 0
}

// Each request has a slot of its own: the rate holds, the instants and the order
// are random, and every path is asked for once.
func TestWarmingKeepsTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate, n = 50, 500
		g := &gatewayStub{answer: stored}
		tally := &warmTally{all: n}
		began := time.Now()
		stubWarming(g, rate, 4, 0).run(t.Context(), numbered(n), tally)
		if took := time.Since(began); took < (n-1)*time.Second/rate || took > n*time.Second/rate {
			t.Errorf("%d requests at %d a second took %s", n, rate, took)
		}
		gaps := map[time.Duration]bool{}
		for i, at := range g.asked {
			begin := began.Add(time.Duration(i) * time.Second / rate)
			if at.Before(begin) || !at.Before(begin.Add(time.Second/rate)) {
				t.Fatalf("request %d came %s after the begin of its slot", i, at.Sub(begin))
			}
			gaps[at.Sub(begin)] = true
		}
		if len(gaps) < n/2 {
			t.Errorf("only %d different instants in %d slots: no jitter", len(gaps), n)
		}
		inOrder := slices.IsSorted(g.paths)
		if slices.Sort(g.paths); inOrder || len(slices.Compact(g.paths)) != n {
			t.Errorf("in the list's order: %v, different paths: %d of %d", inOrder, len(slices.Compact(g.paths)), n)
		}
	})
}

// A service that cannot keep up slows the run down, and is not flooded afterwards.
func TestWarmingBoundsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatewayStub{answer: func(n int, _ *http.Request) (int, string, time.Duration) {
			if n < 8 {
				return 200, "", 10 * time.Second
			}
			return 200, "", 0
		}}
		stubWarming(g, 100, 4, 0).run(t.Context(), numbered(60), &warmTally{})
		if g.most != 4 {
			t.Errorf("%d under way at once, want 4", g.most)
		}
		for i, at := range g.asked {
			if later := i + 12; i >= 8 && later < len(g.asked) && g.asked[later].Sub(at) < 100*time.Millisecond {
				t.Errorf("12 requests within %s behind the slow ones", g.asked[later].Sub(at))
			}
		}
	})
}

func TestWarmingTellsWhatBecameOfPaths(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := map[string][2]any{
			"/000": {200, "sluice; hit; ttl=30"}, "/001": {200, "other; hit, sluice; hit"},
			"/002": {200, "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=60"}, "/003": {200, "sluice; fwd=miss; collapsed; ttl=60"},
			"/004": {200, "sluice; fwd=uri-miss; fwd-status=200; detail=set-cookie"}, "/005": {200, "sluice; fwd=uri-miss; detail=authorization"},
			"/006": {429, ""}, "/007": {404, "sluice; hit; ttl=3"}, "/008": {200, "sluice; hit; ttl=-4; detail=stale-if-error"}, "/009": {429, ""},
		}
		g := &gatewayStub{answer: func(_ int, r *http.Request) (int, string, time.Duration) {
			a := answers[r.URL.Path]
			return a[0].(int), a[1].(string), 3 * time.Second
		}}
		var out, progress bytes.Buffer
		err := stubWarming(g, 2, 10, 4).report(t.Context(), numbered(10), &out, &progress)
		if err != nil {
			t.Errorf("4 errors of 4 allowed: %v", err)
		}
		holds(t, out.String(), "10 of 10 paths: 1 hits, 2 misses (now stored), 3 not stored, 4 errors, in ",
			"not stored, set-cookie: 1, such as /004", "not stored, authorization (answers to identified callers are stored only if they say public", "error, 404 Not Found: 1, such as /007",
			"error, 429 Too Many Requests: 2, such as /00", "a stale answer stood in: 1, such as /008")
		holds(t, progress.String(), "0 of 10 paths: ", "of 10 paths: ")
		if lines := strings.Count(progress.String(), "\n"); lines < 3 {
			t.Errorf("%d lines of progress in %s:\n%s", lines, out.String(), progress.String())
		}
	})
}

// One error too many ends the run, what is under way is waited for, and the exit code is 1.
func TestWarmingStopsAtTooManyErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatewayStub{answer: func(int, *http.Request) (int, string, time.Duration) { return 503, "", 0 }}
		var out bytes.Buffer
		err := stubWarming(g, 10, 2, 3).report(t.Context(), numbered(100), &out, io.Discard)
		if err == nil || err.Error() != "4 paths failed, more than --max-errors 3" || len(g.asked) != 4 {
			t.Errorf("asked %d times: %v", len(g.asked), err)
		}
		holds(t, out.String(), "4 of 100 paths: ")
	})
}

// A gateway that answers nothing warms nothing, however few the paths are.
func TestWarmingFailsWhenEveryPathFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatewayStub{answer: func(int, *http.Request) (int, string, time.Duration) { return 503, "", 0 }}
		err := stubWarming(g, 10, 2, 3).report(t.Context(), numbered(2), io.Discard, io.Discard)
		if err == nil || err.Error() != "all 2 paths failed: the gateway answered 503 Service Unavailable" {
			t.Errorf("says %v", err)
		}
		g.answer = func(int, *http.Request) (int, string, time.Duration) { return 401, "", 0 }
		err = stubWarming(g, 10, 2, 3).report(t.Context(), numbered(2), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "answered 401 Unauthorized: ") || !strings.Contains(err.Error(), "-H 'X-Api-Key: …'") {
			t.Errorf("says %v", err)
		}
		err = stubWarming(g, 10, 2, 3).outcomeOf(t.Context(), &warmTally{all: 1, counts: [warmResults]int{warmFailed: 1}, reasons: [warmResults]map[string]*warmReason{warmFailed: {"connection refused": {count: 1}}}})
		if err == nil || !strings.Contains(err.Error(), "--gateway or $SLUICE_GATEWAY says where") {
			t.Errorf("says %v", err)
		}
	})
}

func TestWarmingEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatewayStub{answer: func(int, *http.Request) (int, string, time.Duration) { return 200, "", time.Hour }}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var out bytes.Buffer
		if err := stubWarming(g, 1, 100, 0).report(ctx, numbered(100), &out, io.Discard); !errors.Is(err, errInterrupted) {
			t.Errorf("says %v", err)
		}
		holds(t, out.String(), "0 of 100 paths: ", "0 errors") // what was cut off did not fail
	})
}

func TestMistakesOfWarmAreNamed(t *testing.T) {
	for args, says := range map[string]string{
		"":                                   "at least one of the flags in the group [file top] is required",
		"-f x --top 3":                       "none of the others can be",
		"-f x --since 2h":                    "none of the others can be",
		"--top 0":                            "--top must be at least 1, not 0",
		"--top 1 --since 0s":                 "--since must be above 0",
		"--top 1 --events 0":                 "--events must be 1 to 1000000, not 0",
		"-f - --rate 0":                      "--rate must be above 0 and at most 10000, not 0",
		"-f - --rate NaN":                    "--rate must be above 0",
		"-f - --parallel 0":                  "--parallel must be 1 to 1000, not 0",
		"-f - --max-errors -1":               "--max-errors must be 0 or more, not -1",
		"-f - --timeout 0s":                  "--timeout must be above 0",
		"-f - --gateway 127.0.0.1":           `--gateway must be http://host:port or https://host, not "127.0.0.1"`,
		"-f - -H X-Tenant-Id:acme -H hunter": "--header, the 2. one: must be 'Name: value'",
	} {
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(Command())
		root.SetArgs(append([]string{"cache", "warm"}, strings.Fields(args)...))
		root.SetIn(strings.NewReader("/a\n"))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("warm %s: %v, want …%s…", args, err, says)
		}
	}
}

// Over real HTTP: what is asked for arrives as the list and the headers say.
func TestWarmSendsWhatIsSaid(t *testing.T) {
	var mu sync.Mutex
	var got []string
	gw := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(r.Method, " ", r.Host, r.RequestURI, " ", r.Header.Get("X-Tenant-Id"), r.Header["Accept-Encoding"]))
		w.Header().Set("Cache-Status", "sluice; fwd=uri-miss; fwd-status=200; stored; ttl=60")
	}))
	t.Cleanup(gw.Close)
	t.Setenv(envGateway, gw.URL)
	root := &cobra.Command{Use: "sluice", SilenceErrors: true}
	root.AddCommand(Command())
	root.SetArgs([]string{"cache", "warm", "-f", "-", "--rate", "1000", "-H", "X-Tenant-Id: acme", "-H", "Host: shop.example"})
	root.SetIn(strings.NewReader("/a?x=%2F&y\nother.example/b\n"))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{"GET other.example/b acme[]", "GET shop.example/a?x=%2F&y acme[]"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	holds(t, out.String(), "2 of 2 paths: 0 hits, 2 misses (now stored), 0 not stored, 0 errors")
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
