//go:build integration

package rehearsal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// alone is a Redis of the test's own: what is left in it is the rehearsal's.
func alone(t *testing.T) (*redis.UniversalOptions, *redis.Client) {
	t.Helper()
	addr := servertest.StartRedis(t).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return &redis.UniversalOptions{Addrs: []string{addr}}, client
}

// twoKeys are a hot one and a cool one.
func twoKeys(s Settings) []Key {
	return []Key{
		{Name: "window", Weight: 9, Latency: 100 * time.Millisecond, Bytes: 1000, Settings: s},
		{Name: "footer", Weight: 1, Latency: 100 * time.Millisecond, Settings: s},
	}
}

func rehearse(t *testing.T, p Plan) *Report {
	t.Helper()
	p.RedisTimeout = 2 * time.Second
	if p.Rate == 0 {
		p.Rate = 500
	}
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func left(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	n, err := c.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The same keys under the same load: in a plain cache they stampede, behind the lock they do not, and readers need not wait.
func TestStampedeIsFoundWhereThereIsNoProtectionAndNoneWhereThereIs(t *testing.T) {
	t.Parallel()
	o, client := alone(t)
	report := rehearse(t, Plan{Redis: o, Keys: twoKeys(Settings{TTL: time.Minute}), Each: 1200 * time.Millisecond, Scenarios: []Scenario{Expiry, SlowSource}})
	if got := report.Stampeded(Plain); len(got) != 2 || got[0] != "window" {
		t.Errorf("in a plain cache %q stampeded, want both", got)
	}
	if got := report.Stampeded(Today); got != nil {
		t.Errorf("with the lock %q stampeded", got)
	}
	before, now := report.find(SlowSource, Plain).Keys[0], report.find(SlowSource, Today).Keys[0]
	if before.PeakLoads < 10 || now.PeakLoads != 1 || now.Loads >= before.Loads || now.Reads < 250 {
		t.Errorf("plain %+v\nprotected %+v", before, now)
	}
	p := report.Proposal
	if p == nil || p.StaleWhileRevalidate < 3*time.Second || p.On {
		t.Fatalf("readers waited, and the proposal is %+v", p)
	}
	after := report.find(SlowSource, Proposed).Keys[0]
	if after.PeakLoads != 1 || after.Stale == 0 || after.P99 >= now.P99 {
		t.Errorf("with the proposal %+v\nbefore %+v", after, now)
	}
	if n := left(t, client); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A leader dies with a load under way: one lease later another one loads, and never two at once.
func TestLeaderIsKilledInTheMiddleOfALoad(t *testing.T) {
	t.Parallel()
	const lease = 1000 * time.Millisecond
	o, _ := alone(t)
	report := rehearse(t, Plan{
		Redis: o, Keys: twoKeys(Settings{TTL: time.Minute}), Each: 3 * time.Second, SpeedUp: 120, Scenarios: []Scenario{LeaderKilled},
		Configure: func(o *Options) { o.Lease = lease },
	})
	k := report.find(LeaderKilled, Today).Worst()
	if k.Stampeded || k.PeakLoads != 1 || k.Loads < 3 {
		t.Errorf("%+v", k)
	}
	if waited := time.Duration(k.P99); waited < lease/2 || waited > 4*lease { // a busy machine is late with the next one
		t.Errorf("readers waited %s for the next leader, want about the lease %s", waited, lease)
	}
	if p := report.Proposal; p == nil || p.StaleWhileRevalidate < lease {
		t.Fatalf("the proposal does not outlast the death of a leader: %+v", p)
	}
	if after := report.find(LeaderKilled, Proposed).Worst(); after.P99 >= k.P99 || after.Stale == 0 {
		t.Errorf("with the proposal: %+v\nbefore %+v", after, k)
	}
}

// Nobody hears that the keys changed: what is in memory is read on, up to its bound and no longer.
func TestDroppedInvalidationsAreStaleWithinTheBound(t *testing.T) {
	t.Parallel()
	// The keys are half-way between two looks into Redis when they change.
	const bound = 700 * time.Millisecond
	o, _ := alone(t)
	report := rehearse(t, Plan{
		Redis: o, Keys: twoKeys(Settings{TTL: time.Hour}), Each: 2 * time.Second, SpeedUp: 1, Scenarios: []Scenario{InvalidationsDropped},
		Configure: func(o *Options) { o.L1TTL = bound },
	})
	k := report.find(InvalidationsDropped, Today).Worst()
	if stale := time.Duration(k.StaleFor); stale < bound/10 || stale > bound+500*time.Millisecond {
		t.Errorf("stale for %s after the change, want more than nothing and at most about %s", stale, bound)
	}
	if k.Stampeded || k.Loads != 2 {
		t.Errorf("all read anew, one load a key is enough: %+v", k)
	}
	if none := report.find(InvalidationsDropped, Plain).Worst(); !none.Stampeded {
		t.Errorf("a change of hot keys is a stampede in a plain cache: %+v", none)
	}
}

// The source fails, and Redis goes: few loads, errors told, and the bound of each.
func TestFailingSourceAndRedisAway(t *testing.T) {
	t.Parallel()
	o, client := alone(t)
	var report *Report
	// On a machine that others keep busy a short outage may pass between two reads: it gets longer.
	for each := 1200 * time.Millisecond; each < 10*time.Second; each *= 2 {
		report = rehearse(t, Plan{Redis: o, Keys: twoKeys(Settings{TTL: time.Minute}), Each: each, Nodes: 3, Scenarios: []Scenario{FailingSource, RedisCut}})
		if report.Proposal != nil && report.find(FailingSource, Today).Worst().Errors > 0 {
			break
		}
	}
	if got := report.Stampeded(Today); got != nil {
		t.Errorf("%q stampeded", got)
	}
	failing := report.find(FailingSource, Today).Worst()
	if failing.Errors == 0 || failing.PeakLoads != 1 {
		t.Errorf("failing: %+v", failing)
	}
	if cut := report.find(RedisCut, Today).Worst(); cut.PeakLoads > 3 || cut.Loads == 0 {
		t.Errorf("cut: %+v, want a load a node at most", cut)
	}
	if report.Proposal == nil || report.Proposal.StaleIfError != outage {
		t.Fatalf("proposal %+v", report.Proposal)
	}
	if after := report.find(FailingSource, Proposed).Worst(); after.Errors != 0 || after.Stale == 0 {
		t.Errorf("with stale-if-error: %+v", after)
	}
	if n := left(t, client); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Ctrl-C in the middle: what was found is returned, nothing stays behind.
func TestInterruptedRehearsalLeavesNothing(t *testing.T) {
	t.Parallel()
	o, client := alone(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var withTTL, without int
	p := Plan{Redis: o, RedisTimeout: 2 * time.Second, Rate: 200, Keys: twoKeys(Settings{TTL: time.Minute}), Each: 500 * time.Millisecond}
	p.Progress = func(_, _ int, r *Run) {
		if r.Protection != Today || r.Scenario != Expiry {
			return
		}
		// While it runs every key has an end: kill -9 would leave nothing for long.
		for _, key := range client.Keys(t.Context(), Prefix+"*").Val() {
			if ttl := client.PTTL(t.Context(), key).Val(); ttl > 0 && ttl <= 3*longest {
				withTTL++
			} else if ttl != -2*time.Nanosecond { // gone meanwhile
				without++
			}
		}
		interrupt()
	}
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Run(ctx)
	if !errors.Is(err, context.Canceled) || report == nil || len(report.Runs) != 6 {
		t.Errorf("%v, %+v", err, report)
	}
	if withTTL == 0 || without != 0 {
		t.Errorf("%d keys with an end, %d without", withTTL, without)
	}
	if n := left(t, client); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// What is not cached today is all loads, and told so.
func TestUncachedKeysAreAllLoads(t *testing.T) {
	t.Parallel()
	o, _ := alone(t)
	report := rehearse(t, Plan{Redis: o, Keys: twoKeys(Settings{Off: true})[:1], Each: time.Second, Scenarios: []Scenario{Expiry}})
	today := report.find(Expiry, Today).Worst()
	if !today.Stampeded || today.Loads < today.Reads || today.WaitersP99 != 0 || report.find(Expiry, Today).NotCached() != 1 {
		t.Errorf("today: %+v", today)
	}
	if plain := report.find(Expiry, Plain); plain.NotCached() != 0 || plain.Worst().WaitersP99 != 0 || plain.Worst().Loads >= today.Loads {
		t.Errorf("a plain cache: %+v", plain)
	}
	if report.Proposal == nil || !report.Proposal.On {
		t.Fatalf("proposal %+v", report.Proposal)
	}
	if after := report.find(Expiry, Proposed).Worst(); after.Stampeded || after.Loads > 10 {
		t.Errorf("proposed: %+v", after)
	}
}

func TestRehearsalWithoutRedisSaysSo(t *testing.T) {
	t.Parallel()
	r, err := New(Plan{Redis: &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}, Rate: 10, Keys: twoKeys(Settings{TTL: time.Minute})})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := r.Run(t.Context()); err == nil || report != nil {
		t.Errorf("%v, %+v", err, report)
	}
}

// Where Redis goes away, or comes back empty, keys seem to stampede: no such run is reported.
func TestRedisLostInARehearsal(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*devserver.Redis, *redis.Client){
		"away":  func(s *devserver.Redis, _ *redis.Client) { s.Kill() },
		"empty": func(_ *devserver.Redis, c *redis.Client) { c.FlushAll(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.StartRedis(t)
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			t.Cleanup(func() { _ = client.Close() })
			p := Plan{
				Redis: &redis.UniversalOptions{Addrs: []string{server.Addr()}}, Keys: twoKeys(Settings{TTL: time.Minute}),
				Rate: 50, Each: 500 * time.Millisecond, Scenarios: []Scenario{Expiry},
			}
			lost := false
			p.Configure = func(o *Options) { // at the start of the first protected run
				if !lost {
					lost = true
					lose(server, client)
				}
			}
			r, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			report, err := r.Run(t.Context())
			if err == nil || report == nil || len(report.Runs) != 1 || report.Stampeded(Today) != nil {
				t.Errorf("%v, %+v", err, report)
			}
		})
	}
}
