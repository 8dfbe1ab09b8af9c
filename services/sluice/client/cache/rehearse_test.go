package cache

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

// Usage has an exit status of its own: a job must not take it for a stampede.
func TestMistakesOfRehearseAreNamed(t *testing.T) {
	plane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/services/shop" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"name":"shop","prefix":"/shop/","upstreams":[{"url":"http://127.0.0.1:1"}]}`)
	}))
	t.Cleanup(plane.Close)
	const shop = "--route shop --rate 5 "
	for args, says := range map[string]string{
		"":                                 "--route must name a service",
		"--route shop":                     "--rate must be given: reads a second",
		"--route shop --rate -1":           "--rate must be above 0 and at most 50000, not -1",
		"--route shop --rate NaN":          "--rate must be above 0",
		"--route shop --rate many":         `--rate must be a number such as 0.5, not "many"`,
		"surplus " + shop:                  "takes no argument such as \"surplus\"",
		"--frob":                           "unknown flag",
		shop + "--nodes 1":                 "--nodes must be 2 to 64, not 1",
		shop + "--duration 2h":             "--duration must be 1s to 1h, not 2h",
		shop + "--speed-up 0.5":            "--speed-up must be 1 to 1e9, or 0",
		shop + "--speed-up Inf":            "--speed-up must be 1 to 1e9, or 0",
		shop + "--slow-by 0":               "--slow-by must be 1 to 1000",
		shop + "--source-latency 2m":       "--source-latency must be up to 1m",
		shop + "--output xml":              "--output must be table or json",
		shop + "--top 0":                   "--top must be at least 1",
		shop + "--top 10001":               "--top must be at most 10000",
		shop + "--scenario flood":          `--scenario must be one of [expiry `,
		shop + "--redis http://u:hunter@h": "--redis must be redis://",
		shop:                               "no Redis to rehearse on",
		shop + "--config /nowhere.yaml":    "/nowhere.yaml",
		shop + "--redis redis://127.0.0.1:1 --paths -":            "reach the Redis to rehearse on (--redis, else redis.cache): ",
		"--route bank --rate 5 --redis redis://h --paths -":       `read service "bank" of --route`,
		"--route=shop\x00GET\x00/x --rate 5 --redis redis://h":    `service shop has no endpoint "GET /x"`,
		"--route shop --rate 5 --redis redis://127.0.0.1:1 -p 1s": "unknown shorthand flag",
	} {
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(Command())
		var given []string
		for _, arg := range strings.Fields(args) {
			given = append(given, strings.ReplaceAll(arg, "\x00", " "))
		}
		root.SetArgs(append([]string{"cache", "rehearse", "--url", plane.URL, "--token", "t"}, given...))
		root.SetIn(strings.NewReader("/shop/a\n"))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("rehearse %s: %v, want …%s…", args, err, says)
			continue
		}
		if own, ok := err.(interface{ ExitStatus() int }); !ok || own.ExitStatus() != 2 { //nolint:errorlint // the outermost decides
			t.Errorf("rehearse %s: exit status of %T, want 2", args, err)
		}
	}
}

func shopRoute(pattern string) *cachedRoute {
	return &cachedRoute{pattern: pattern, cache: catalog.Cache{Enabled: new(true), TTL: "60s", StaleIfError: "30s"}, service: catalog.Service{
		Name: "shop", Prefix: "/shop/", Endpoints: []catalog.Endpoint{
			{Pattern: "GET /shop/item/{id}", Cache: &catalog.Cache{}},
			{Pattern: "GET /shop/item/new"},
		},
	}}
}

func TestWhichPathsARouteCovers(t *testing.T) {
	t.Parallel()
	service, endpoint := shopRoute(""), shopRoute("GET /shop/item/{id}")
	for path, want := range map[string][2]bool{
		"/shop/":         {true, false},
		"/shop/a":        {true, false},
		"/shop/item/1":   {false, true},
		"/shop/item/new": {true, false}, // more specific, and without a setting of its own
		"/bank/a":        {false, false},
	} {
		if got := [2]bool{service.covers(path), endpoint.covers(path)}; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// What the stored answers say goes before the route's settings, and a pattern stands for what is stored under it.
func TestKeysOfARehearsal(t *testing.T) {
	t.Parallel()
	answer := cache.Stored{TTL: 30 * time.Second, StaleWhileRevalidate: 5 * time.Second, Delta: 80 * time.Millisecond, Bytes: 100}
	slow := answer
	slow.Delta = 200 * time.Millisecond
	validated := answer
	validated.TTL = 0
	stored := []storedURL{
		{"h", "/shop/a", "", answer}, {"h", "/shop/a", "", slow}, {"h", "/shop/a", "x=1", answer},
		{"h", "/shop/item/1", "", answer}, {"h", "/shop/item/2", "", answer}, {"h", "/shop/live", "", validated},
	}
	make := func(pattern string, top int, targets map[string]float64) ([]rehearsal.Key, string, error) {
		k := keyMaker{flags: &rehearseFlags{hottest: hottest{top: top}}, route: shopRoute(pattern), stored: stored, found: map[string]*rehearsal.Key{}}
		for path, weight := range targets {
			k.add(warmTarget{path: path}, weight)
		}
		var told bytes.Buffer
		keys, err := k.finish(&told)
		return keys, told.String(), err
	}
	ofAnswer := rehearsal.Settings{TTL: 30 * time.Second, StaleWhileRevalidate: 5 * time.Second}
	ofRoute := rehearsal.Settings{TTL: time.Minute, StaleIfError: 30 * time.Second}
	keys, told, err := make("", 3, map[string]float64{
		"/shop/a": 6, "/shop/cold": 1, "/shop/b": 2, "/shop/item/{id}": 50, "/shop/live": 9, "/bank/x": 9, "/shop/none/{id}": 9,
	})
	want := []rehearsal.Key{
		{Name: "h/shop/a", Weight: 4, Latency: 200 * time.Millisecond, Bytes: 100, Settings: ofAnswer},
		{Name: "/shop/b", Weight: 2, Latency: 200 * time.Millisecond, Settings: ofRoute},
		{Name: "h/shop/a?x=1", Weight: 2, Latency: 80 * time.Millisecond, Bytes: 100, Settings: ofAnswer},
	}
	if err != nil || !reflect.DeepEqual(keys, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, keys, want)
	}
	holds(t, told, "left out: 3 that are of other routes", "left out: 1 that are validated at each request", "left out: 1 that are patterns of which nothing is stored")
	keys, _, err = make("GET /shop/item/{id}", 9, map[string]float64{"/shop/item/{id}": 50, "/shop/a": 6})
	if err != nil || len(keys) != 2 || keys[0].Name != "h/shop/item/1" || math.Abs(keys[0].Weight-25) > 0.01 {
		t.Errorf("%v %+v", err, keys)
	}
	if _, _, err := make("", 9, map[string]float64{"/bank/x": 1}); err == nil {
		t.Error("nothing of the route is nothing to rehearse")
	}
}

func TestProposedSetting(t *testing.T) {
	t.Parallel()
	r := shopRoute("GET /shop/item/{id}")
	r.cache.MaxObjectBytes = 1 << 20
	p := &rehearsal.Proposal{StaleWhileRevalidate: 10 * time.Second, StaleIfError: 10 * time.Minute, Why: []string{"readers waited"}}
	var out bytes.Buffer
	if err := printProposal(&out, p, r.proposed(p), r); err != nil {
		t.Fatal(err)
	}
	holds(t, out.String(), "# readers waited\n", "endpoints:\n", "pattern: GET /shop/item/{id}\n", "enabled: true\n", "maxObjectBytes: 1048576\n", "staleIfError: 10m\n", "staleWhileRevalidate: 10s\n", "ttl: 60s\n")
	off := &cachedRoute{cache: catalog.Cache{Enabled: new(false)}}
	if got := off.proposed(&rehearsal.Proposal{On: true, TTL: time.Minute}); !got.On() || got.TTL != "1m" {
		t.Errorf("%+v", got)
	}
	if r.proposed(nil) != nil {
		t.Error("nothing proposed is nothing to set")
	}
	for d, want := range map[time.Duration]string{time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 5 * time.Second: "5s"} {
		if got := plainDuration(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A route that is not cached is no cache that does badly, and a plain cache is none that does nothing.
func TestProtectionsAreNamedForWhatTheyAre(t *testing.T) {
	t.Parallel()
	off := rehearsal.Key{Name: "/shop/a", Latency: time.Second, Settings: rehearsal.Settings{Off: true}}
	report := &rehearsal.Report{Runs: []rehearsal.Run{
		{Scenario: rehearsal.Expiry, Protection: rehearsal.Plain, Keys: []rehearsal.KeyResult{{Key: off.Name, Loads: 18, PeakLoads: 6, Stampeded: true}}},
		{Scenario: rehearsal.Expiry, Protection: rehearsal.Today, Keys: []rehearsal.KeyResult{{Key: off.Name, Loads: 333, PeakLoads: 13, Stampeded: true, NotCached: true}}},
	}}
	var out bytes.Buffer
	if err := (&rehearseFlags{output: "table"}).print(&out, report, []rehearsal.Key{off}, shopRoute(""), true); err != nil {
		t.Fatal(err)
	}
	holds(t, out.String(), "expiry    plain cache", "expiry    not cached", "plain cache: nothing is coalesced, whoever misses loads; not cached: each read is a load, as today\n",
		"1 of 1 keys stampeded, plain cache: /shop/a\n", "1 of 1 keys stampeded, not cached: /shop/a\n")
	if strings.Contains(out.String(), "no protection") || strings.Contains(out.String(), ", as today:") {
		t.Error(out.String())
	}
	if got := protectionText(rehearsal.Today, 1, 3); got != "as today, 1 not cached" {
		t.Error(got)
	}
}

// Answers to identified callers are not stored by the settings alone: the route is not called protected.
func TestIdentifiedRoutesAreNotCalledProtected(t *testing.T) {
	t.Parallel()
	r := shopRoute("")
	r.service.RequireKey = true
	s := r.settings()
	if !s.Off || s.TTL != time.Minute {
		t.Errorf("%+v", s)
	}
	keys := []rehearsal.Key{{Name: "/shop/a", Latency: time.Second, Settings: s}}
	r.judge(keys, true, 0)
	if !r.unseen {
		t.Error("the cache holds nothing, and that is not seen")
	}
	var out bytes.Buffer
	p := &rehearsal.Proposal{On: true, Why: []string{"/shop/a is not cached"}}
	if err := (&rehearseFlags{output: "table"}).print(&out, &rehearsal.Report{Proposal: p}, keys, r, true); err != nil {
		t.Fatal(err)
	}
	holds(t, out.String(), "not stored today: 1 of 1 keys: requests of shop carry an identity (requireKey)", "or the route has shared: true",
		"not stored today: caching is enabled, and the cache holds no answer of shop", "# by itself this stores nothing", "ttl: 60s\n")
	out.Reset()
	if err := printProposal(&out, nil, nil, r); err != nil || strings.Contains(out.String(), "nothing to set") {
		t.Errorf("%v %s", err, out.String())
	}
	shared := shopRoute("")
	shared.service.RequireIdentity, shared.cache.Shared = "token", true
	shared.judge(keys[:0], true, 1)
	if shared.settings().Off || shared.notStored != nil || shared.unseen {
		t.Errorf("%+v", shared)
	}
}

// holds holds that each line is in the output.
func holds(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}
