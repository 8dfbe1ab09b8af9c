//go:build integration

package gateway

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
)

// The policies, each with a service of its own and a quota that never runs out.
var policiesUnderTest = []string{"open", "closed", "local"}

const plenty = 1_000_000_000

// slowly is how late Redis answers where it is tooSlow.
const slowly = 100 * time.Millisecond

// away is how a fault looks to a gateway.
type away int

const (
	neverAway away = iota // the store answers as ever
	fullyAway             // no answer of the store's comes while it lasts
	tooSlow               // answers come after slowly, when nobody waits any more unless the machine is as slow
)

// fault is one row of the table: what happens to Redis, and how it ends.
type fault struct {
	begin, end func(t testing.TB, f *faulty)
	looks      away
	// forgets: the counters are lost with it.
	forgets bool
}

var faults = map[string]fault{
	"blackhole":    {toxic(`{"type":"timeout","attributes":{"timeout":0}}`), noToxics, fullyAway, false},
	"RST":          {toxic(`{"type":"reset_peer","attributes":{"timeout":0}}`), noToxics, fullyAway, false},
	"100 ms":       {toxic(`{"type":"latency","attributes":{"latency":` + strconv.FormatInt(slowly.Milliseconds(), 10) + `}}`), noToxics, tooSlow, false},
	"READONLY":     {command("replicaof", "127.0.0.1", "1"), command("replicaof", "no", "one"), fullyAway, false},
	"OOM":          {command("config", "set", "maxmemory", "1"), command("config", "set", "maxmemory", "0"), fullyAway, false},
	"script flush": {command("script", "flush"), func(testing.TB, *faulty) {}, neverAway, false},
	"flushall":     {command("flushall"), func(testing.TB, *faulty) {}, neverAway, true},
	"paused": {
		func(t testing.TB, f *faulty) { must(t, f.server.Pause()) },
		func(t testing.TB, f *faulty) { must(t, f.server.Resume()) }, fullyAway, false,
	},
	"killed": {
		func(_ testing.TB, f *faulty) { f.server.Kill() },
		func(t testing.TB, f *faulty) { must(t, f.server.Start(t.Context())) }, fullyAway, true,
	},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func toxic(text string) func(testing.TB, *faulty) {
	return func(t testing.TB, f *faulty) {
		_, err := f.proxy.Toxics.AddToxicJson(strings.NewReader(text))
		must(t, err)
	}
}

func noToxics(t testing.TB, f *faulty) { f.proxy.Toxics.ResetToxics(t.Context()) }

func command(args ...any) func(testing.TB, *faulty) {
	return func(t testing.TB, f *faulty) {
		admin := redis.NewClient(&redis.Options{Addr: f.server.Addr()})
		defer admin.Close()
		must(t, admin.Do(t.Context(), args...).Err())
	}
}

// faulty is a gateway with a Redis of its own behind a proxy, under load.
type faulty struct {
	server *devserver.Redis
	proxy  *toxiproxy.Proxy
	gate   *running

	// stopped and resumed are when the gateway itself was, if it was.
	stopped, resumed time.Time

	mu      sync.Mutex
	answers []sample
}

// sample is one answer, and when it was asked for.
type sample struct {
	policy   string
	status   int
	degraded bool
	asked    time.Time
	took     time.Duration
	left     int64 // remaining, -1 where it is not told
}

func newFaulty(t testing.TB, d *deployment, id string) *faulty {
	t.Helper()
	f := &faulty{server: servertest.StartRedis(t)}
	f.behindProxy(t, id)
	f.gate = d.runReady(id, f.proxy.Listen, "", func(c *Config) { c.Store = DefaultConfig().Store; c.Store.KeyPrefix = "" })
	return f
}

func (f *faulty) behindProxy(t testing.TB, name string) {
	t.Helper()
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	f.proxy = toxiproxy.NewProxy(proxies, name, "127.0.0.1:0", f.server.Addr())
	must(t, f.proxy.Start())
	t.Cleanup(f.proxy.Stop)
}

// withPolicies puts a service and a rule for each policy.
func withPolicies(t testing.TB) *deployment {
	d := onSharedKafka(t)
	for _, p := range policiesUnderTest {
		d.put(catalog.Topic, p, catalog.Service{Name: p, Prefix: "/" + p + "/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}}})
		d.putRule(`{"id":"` + p + `","subject":{"kind":"tenant","value":"*"},"scope":{"service":"` + p + `"},"metric":"` + p +
			`","limit":{"algorithm":"quota","kind":"renewing","limit":` + strconv.Itoa(plenty) + `,"period":"year"},"onStoreLoss":"` + p + `"}`)
	}
	return d
}

// ask asks for one policy's service and keeps what came of it.
func (f *faulty) ask(t testing.TB, policy string) sample {
	t.Helper()
	s := sample{policy: policy, asked: time.Now(), left: -1}
	a := do(t, http.MethodGet, f.gate.base+"/"+policy+"/x", "X-Tenant-Id", "acme")
	s.took, s.status, s.degraded = time.Since(s.asked), a.StatusCode, a.Header.Get("Sluice-Degraded") != ""
	if fields := a.Header.Values("RateLimit"); len(fields) > 0 {
		s.left = parseField(t, fields)[0].params["r"]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, s)
	return s
}

// load asks for all policies, a few clients at a modest pace, until stopped.
func (f *faulty) load(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				f.ask(t, policiesUnderTest[i%len(policiesUnderTest)])
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); clients.Wait() })
}

// since are the answers asked for from a time on.
func (f *faulty) since(from time.Time) []sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.answers), func(s sample) bool { return s.asked.Before(from) })
}

// whole reports whether n answers of each policy since a time came, the last
// ones with the store.
func whole(all []sample, n int) bool {
	for _, p := range policiesUnderTest {
		of := slices.DeleteFunc(slices.Clone(all), func(s sample) bool { return s.policy != p })
		if len(of) < n {
			return false
		}
		for _, s := range of[len(of)-n:] {
			if s.status != 200 || s.degraded {
				return false
			}
		}
	}
	return true
}

func p99(all []sample) time.Duration {
	var took []time.Duration
	for _, s := range all {
		took = append(took, s.took)
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[len(took)*99/100]
}

func TestFaultsOfRedis(t *testing.T) {
	d := withPolicies(t)
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, d, "gw-"+url.PathEscape(name))
			r := f.run(t, fault, 300*time.Millisecond)
			t.Logf("p99 %s quiet, %s while away, back %s after the end; BenchmarkFaults measures", p99(r.quiet), p99(r.during), r.back)
			f.check(t, fault, r)
			f.checkCharged(t, fault)
		})
	}
}

// byPolicy reports whether it is what its policy says while the store is away.
func (s *sample) byPolicy() bool {
	if s.policy == "closed" {
		return s.status == 503 && !s.degraded
	}
	return s.status == 200 && s.degraded
}

// followed reports whether each policy has been seen to be followed.
func followed(all []sample) bool {
	for _, p := range policiesUnderTest {
		if !slices.ContainsFunc(all, func(s sample) bool { return s.policy == p && s.byPolicy() }) {
			return false
		}
	}
	return true
}

// course is how a fault went.
type course struct {
	quiet, during []sample
	begun         time.Time // the fault was there by then
	opened        time.Time // the breaker has opened by then
	back          time.Duration
}

// run loads the gateway before, during and after a fault.
func (f *faulty) run(t testing.TB, fault fault, opens time.Duration) course {
	t.Helper()
	stop := f.load(t)
	defer stop()
	servertest.Eventually(t, patience, "a quiet start", func() bool { return whole(f.since(time.Time{}), 20) })
	r := course{quiet: f.since(time.Time{})}
	began := time.Now()
	fault.begin(t, f)
	r.begun, r.opened = time.Now(), began.Add(opens)
	servertest.Eventually(t, patience, "answers during the fault", func() bool {
		all := f.since(r.opened)
		return len(all) > 150 && (fault.looks == neverAway || followed(all))
	})
	r.during = f.since(began)
	ended := time.Now()
	fault.end(t, f)
	servertest.Eventually(t, patience, "answers after the fault", func() bool {
		r.back = time.Since(ended)
		return whole(f.since(ended), 5)
	})
	return r
}

// check holds the answers to what the policies promise, from the fault's first
// moment on where no answer of the store's can come; how long they took is for
// BenchmarkFaults.
func (f *faulty) check(t *testing.T, fault fault, r course) {
	t.Helper()
	f.checkAnswers(t)
	if fault.looks == neverAway {
		return
	}
	for _, s := range r.during {
		// A gateway that did not run for so long takes the answer that has come.
		late := fault.looks == tooSlow && s.took >= slowly
		if !s.byPolicy() && !late && s.asked.After(r.begun) {
			t.Errorf("away, %s is answered %d, degraded %t, after %s", s.policy, s.status, s.degraded, s.took)
			break
		}
	}
}

// checkAnswers: never a 500, never an accidental 429, and a 503 only where a
// rule is closed.
func (f *faulty) checkAnswers(t testing.TB) {
	t.Helper()
	for _, s := range f.since(time.Time{}) {
		if s.status != 200 && (s.policy != "closed" || s.status != 503) {
			t.Errorf("%s is answered %d", s.policy, s.status)
		}
	}
}

// checkCharged: what passed is charged, once, whatever passed uncounted; of
// calls whose answers were lost nobody knows.
func (f *faulty) checkCharged(t *testing.T, fault fault) {
	t.Helper()
	if fault.forgets {
		return
	}
	debts := f.gate.gate.charger.Journal.(*journal.Journal)
	for _, p := range policiesUnderTest {
		var used, passed, lost int64
		right := func() bool {
			paid := debts.Pending() == 0 // before this answer, which tells of it
			last := f.ask(t, p)
			if !paid || last.status != 200 || last.degraded {
				return false
			}
			passed, lost, used = 0, int64(f.gate.counters.store.Stats().Lost), plenty-last.left
			for _, s := range f.since(time.Time{}) {
				if s.policy == p && s.status == 200 {
					passed++
				}
			}
			return passed <= used && used <= passed+lost
		}
		deadline := time.Now().Add(patience)
		for !right() {
			if time.Now().After(deadline) {
				t.Errorf("%s: %d passed, %d are charged, %d answers were lost, %d are owed", p, passed, used, lost, debts.Pending())
				break
			}
		}
	}
}
