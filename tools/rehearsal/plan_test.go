package rehearsal

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func planOf(keys ...Key) Plan {
	return Plan{Redis: &redis.UniversalOptions{}, Rate: 100, Keys: keys}
}

func keyOf(name string) Key {
	return Key{Name: name, Latency: time.Second, Settings: Settings{TTL: time.Minute}}
}

func TestMistakesInPlansAreNamed(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Plan){
		"no redis":                           func(p *Plan) { p.Redis = nil },
		"no keys":                            func(p *Plan) { p.Keys = nil },
		"rate must be above 0":               func(p *Plan) { p.Rate = 0 },
		"rate must be above 0 and":           func(p *Plan) { p.Rate = math.NaN() },
		"at most 50000 reads a second":       func(p *Plan) { p.Rate = MaxRate + 1 },
		"nodes must be 2 to 64, not 1":       func(p *Plan) { p.Nodes = 1 },
		"must not be negative":               func(p *Plan) { p.SpeedUp = -1 },
		"nor without end":                    func(p *Plan) { p.SpeedUp = math.Inf(1) },
		"slowBy must not be negative":        func(p *Plan) { p.SlowBy = math.NaN() },
		"are none within a run of 5s":        func(p *Plan) { p.Rate = 0.1 },
		"once takes 6s, more than a run of ": func(p *Plan) { p.Keys[0].Latency = 6 * time.Second * 64 / 65 },
		"load 1000 keys once takes 1":        func(p *Plan) { p.Keys = slices.Repeat(p.Keys, 1000) },
		`key "a": latency must be above 0`:   func(p *Plan) { p.Keys[0].Latency = 0 },
		`key "a": ttl must be above 0`:       func(p *Plan) { p.Keys[0].Settings.TTL = 0 },
		`key "a": weight must not be negat`:  func(p *Plan) { p.Keys[0].Weight = -1 },
		`key "a": weight must not be negati`: func(p *Plan) { p.Keys[0].Weight = math.NaN() },
	} {
		p := planOf(keyOf("a"))
		change(&p)
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want …%s…", err, says)
		}
	}
}

// TTLs are shortened so that keys expire within a run, and never below what a load takes.
func TestSpeedingUp(t *testing.T) {
	t.Parallel()
	long := keyOf("long")
	long.Settings = Settings{TTL: time.Hour, StaleWhileRevalidate: 30 * time.Second, StaleIfError: time.Hour}
	r, err := New(planOf(keyOf("a"), keyOf("b"), long))
	if err != nil {
		t.Fatal(err)
	}
	if r.SpeedUp() != 48 {
		t.Errorf("a minute in runs of 5 s is sped up %g times, want 48", r.SpeedUp())
	}
	p := &r.plan
	for _, c := range []struct {
		name string
		of   Settings
		took time.Duration
		by   Protection
		want Settings
	}{
		{"by the factor", Settings{TTL: 4 * time.Minute}, time.Second, Today, Settings{TTL: 5 * time.Second}},
		{"a load's time is kept", Settings{TTL: time.Minute}, time.Second, Today, Settings{TTL: 2 * time.Second}},
		{"timers too", Settings{TTL: time.Second}, time.Millisecond, Today, Settings{TTL: shortest}},
		{"stale limits are not sped up, but bounded", long.Settings, time.Second, Today, Settings{TTL: 75 * time.Second, StaleWhileRevalidate: 30 * time.Second, StaleIfError: longest}},
		{"what is not cached stays so", Settings{Off: true}, time.Second, Today, Settings{Off: true}},
		{"but beside a cache alone", Settings{Off: true}, 10 * time.Millisecond, Plain, Settings{TTL: 1250 * time.Millisecond}},
	} {
		if got := p.rehearsed(c.of, c.took, c.by); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestKeysAreDrawnByWeight(t *testing.T) {
	t.Parallel()
	p := planOf(keyOf("a"), keyOf("b"), keyOf("c"))
	p.Keys[0].Weight, p.Keys[2].Weight = 8, 1
	tr := newTraffic(&p, nil, nil)
	var drawn [3]int
	for range 100_000 {
		drawn[tr.pick()]++
	}
	if drawn[0] < 78_000 || drawn[0] > 82_000 || drawn[1] < 9_000 || drawn[2] < 9_000 {
		t.Errorf("drawn %v, want 8 : 1 : 1", drawn)
	}
}

// result is a report of one run with one key, as it would be judged.
func reportOf(s Scenario, k KeyResult) *Report {
	return &Report{Runs: []Run{{Scenario: s, Protection: Today, Keys: []KeyResult{k}}}}
}

func TestWhatIsProposed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings Settings
		scenario Scenario
		seen     KeyResult
		want     *Proposal // without the reasons
	}{
		{"all is well", Settings{TTL: time.Minute}, Expiry, KeyResult{WaitersP99: 20}, nil},
		{"readers wait", Settings{TTL: time.Minute}, Expiry, KeyResult{WaitersP99: 21}, &Proposal{StaleWhileRevalidate: 10 * time.Second}},
		{"readers wait for a slow source", Settings{TTL: time.Minute, StaleWhileRevalidate: 5 * time.Second}, SlowSource, KeyResult{WaitersP99: 2100}, &Proposal{StaleWhileRevalidate: 10 * time.Second}},
		{"it has been set", Settings{TTL: time.Minute, StaleWhileRevalidate: 10 * time.Second}, SlowSource, KeyResult{WaitersP99: 2100}, nil},
		{"redis away is not its affair", Settings{TTL: time.Minute}, RedisCut, KeyResult{WaitersP99: 2100}, nil},
		{"readers get errors", Settings{TTL: time.Minute}, FailingSource, KeyResult{Errors: 1}, &Proposal{StaleIfError: outage}},
		{"for ten minutes they do not", Settings{TTL: time.Minute, StaleIfError: outage}, FailingSource, KeyResult{Errors: 1}, nil},
		{"not cached", Settings{Off: true}, Expiry, KeyResult{NotCached: true, PeakLoads: 4}, &Proposal{On: true, TTL: time.Minute, StaleWhileRevalidate: 10 * time.Second}},
	} {
		k := keyOf("a")
		k.Settings = c.settings
		r, err := New(planOf(k))
		if err != nil {
			t.Fatal(err)
		}
		got := r.plan.propose(reportOf(c.scenario, c.seen))
		if got == nil || c.want == nil {
			if got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
			continue
		}
		if why := strings.Join(got.Why, "\n"); c.settings.Off && (strings.Contains(why, "waited") || !strings.Contains(why, "3 readers of a would wait for one load")) {
			t.Errorf("%s: %s", c.name, why)
		}
		if len(got.Why) == 0 || got.On != c.want.On || got.TTL != c.want.TTL || got.StaleWhileRevalidate != c.want.StaleWhileRevalidate || got.StaleIfError != c.want.StaleIfError {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
