package rehearsal

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// Key is one key of the copy.
type Key struct {
	Name string
	// Weight is how often it is read, beside the others; 0 is 1.
	Weight float64
	// Latency is how long one load takes.
	Latency time.Duration
	// Bytes is the size of its value; the copy's is at most 64 KiB.
	Bytes    int
	Settings Settings
}

// Settings are what a key's value is kept by.
type Settings struct {
	// Off: it is not cached today. Every read is a load. The rest is by what it would be kept, zero where nothing says.
	Off bool
	// TTL is how long a value is fresh. It is shortened by Plan.SpeedUp; the stale limits are not.
	TTL                                time.Duration
	StaleWhileRevalidate, StaleIfError time.Duration
}

// Value is what the nodes keep: which version of the source it is, and as many bytes as the real one.
type Value struct {
	version int64
	pad     []byte
}

// Plan is what is rehearsed. Redis, Keys and Rate are required; every other field has a usable zero value.
type Plan struct {
	// Redis is where the nodes keep the copy; each node makes connections of its own.
	Redis *redis.UniversalOptions
	// RedisTimeout bounds one call; default 100 ms.
	RedisTimeout time.Duration
	Keys         []Key
	// Rate is reads a second, of all nodes and keys together, at most MaxRate.
	Rate float64
	// Nodes is how many processes are played; default 4, at least 2.
	Nodes int
	// Each is how long one run takes, its preparation aside; default 5 s.
	Each time.Duration
	// SpeedUp divides TTLs; 0 is such that half of the keys expire four times in a run, 1 at least.
	SpeedUp float64
	// SlowBy is how many times as long a slow source takes; default 5.
	SlowBy float64
	// Scenarios are those to play; nil is all.
	Scenarios []Scenario
	// Configure sets what the program sets beyond the keys' settings; nil is nothing.
	Configure func(*Options)
	// Progress is told of each run when it ends, by Run's goroutine; nil is nobody.
	Progress func(done, all int, r *Run)
}

// Options are a node's.
type Options = cache.Options[Value]

// Runs is how many runs the plan has at most: those of a proposal included.
func (p *Plan) Runs() (n int) {
	scenarios := p.Scenarios
	if scenarios == nil {
		scenarios = Scenarios()
	}
	for _, by := range []Protection{Plain, Today, Proposed} {
		for _, s := range scenarios {
			if s.tries(by) {
				n++
			}
		}
	}
	return n
}

// MaxRate is what one process can read at all.
const MaxRate = 50_000

// maxBytes bounds a copied value: what is rehearsed is loads, not bandwidth.
const maxBytes = 64 << 10

// New checks the plan. It starts nothing.
func New(p Plan) (*Rehearsal, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	if p.RedisTimeout == 0 {
		p.RedisTimeout = 100 * time.Millisecond
	}
	if p.Nodes == 0 {
		p.Nodes = 4
	}
	if p.Each == 0 {
		p.Each = 5 * time.Second
	}
	if p.SlowBy == 0 {
		p.SlowBy = 5
	}
	if p.Scenarios == nil {
		p.Scenarios = Scenarios()
	}
	if p.Configure == nil {
		p.Configure = func(*Options) {}
	}
	if p.Progress == nil {
		p.Progress = func(int, int, *Run) {}
	}
	if err := p.checkTime(); err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	if p.SpeedUp == 0 {
		p.SpeedUp = fitting(p.Keys, p.Each)
	}
	return &Rehearsal{plan: p}, nil
}

var (
	errRedis = errors.New("no redis to keep the copy in")
	errKeys  = errors.New("no keys")
)

func (p *Plan) check() error {
	switch {
	case p.Redis == nil:
		return errRedis
	case len(p.Keys) == 0:
		return errKeys
	case !(p.Rate > 0 && p.Rate <= MaxRate): // NaN is neither
		return fmt.Errorf("rate must be above 0 and at most %d reads a second, not %g", MaxRate, p.Rate)
	case p.Nodes < 0 || p.Nodes == 1 || p.Nodes > 64:
		return fmt.Errorf("nodes must be 2 to 64, not %d", p.Nodes)
	case p.Each < 0 || !finite(p.SpeedUp) || !finite(p.SlowBy):
		return errors.New("each, speedUp and slowBy must not be negative, nor without end")
	}
	for _, k := range p.Keys {
		switch {
		case k.Latency <= 0:
			return fmt.Errorf("key %q: latency must be above 0, not %s", k.Name, k.Latency)
		case !k.Settings.Off && k.Settings.TTL <= 0:
			return fmt.Errorf("key %q: ttl must be above 0, not %s", k.Name, k.Settings.TTL)
		case !(k.Weight >= 0):
			return fmt.Errorf("key %q: weight must not be negative, not %g", k.Name, k.Weight)
		}
	}
	return nil
}

func finite(f float64) bool { return f >= 0 && f <= math.MaxFloat64 } // NaN is not

// checkTime refuses runs that say nothing, in which nobody reads, and those that Each does not bound: before each run
// every key is loaded once.
func (p *Plan) checkTime() error {
	if p.Rate*p.Each.Seconds() < 1 {
		return fmt.Errorf("%g reads a second are none within a run of %s: read more, or longer", p.Rate, p.Each.Round(time.Millisecond))
	}
	var all, slowest time.Duration
	for _, k := range p.Keys {
		all, slowest = all+k.Latency/fillAtOnce, max(slowest, k.Latency)
	}
	if all+slowest > p.Each {
		return fmt.Errorf("to load %d keys once takes %s, more than a run of %s: fewer keys, or longer runs", len(p.Keys), (all + slowest).Round(time.Millisecond), p.Each.Round(time.Millisecond))
	}
	return nil
}
