package rehearsal

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// Proposal is what to set for all keys. A zero field is nothing to change.
type Proposal struct {
	// On: it is not cached today.
	On                   bool          `json:"on,omitempty"`
	TTL                  time.Duration `json:"-"`
	StaleWhileRevalidate time.Duration `json:"-"`
	StaleIfError         time.Duration `json:"-"`
	// Why is a sentence for each change.
	Why []string `json:"why"`
}

const (
	// dangerousWaiters is the alarm's own bound, of one process (CacheLoadWaiters).
	dangerousWaiters = 5
	// outage is what stale-if-error is proposed for.
	outage = 10 * time.Minute
	// usualTTL is proposed where nothing is cached.
	usualTTL = time.Minute
	// lease is libs/cache's own: how long a dead leader holds up a load.
	lease = 3 * time.Second
)

// propose judges what was seen with today's settings; nil is nothing to change.
func (p *Plan) propose(r *Report) *Proposal {
	var out Proposal
	p.proposeCaching(&out)
	p.proposeRevalidate(r, &out)
	p.proposeFailing(r, &out)
	if len(out.Why) == 0 {
		return nil
	}
	return &out
}

func (p *Plan) proposeCaching(out *Proposal) {
	for _, k := range p.Keys {
		if k.Settings.Off {
			if out.On = true; k.Settings.TTL == 0 {
				out.TTL = usualTTL
			}
			out.Why = append(out.Why, fmt.Sprintf("%s is not cached: every read is a load", k.Name))
			return
		}
	}
}

// proposeRevalidate looks for the key whose readers wait most.
func (p *Plan) proposeRevalidate(r *Report, out *Proposal) {
	most, at, in := 0, -1, Scenario("")
	for _, s := range []Scenario{Expiry, SlowSource, LeaderKilled} {
		run := r.find(s, Today)
		if run == nil {
			continue
		}
		for i := range run.Keys {
			if n := waiters(&run.Keys[i]); n > most {
				most, at, in = n, i, s
			}
		}
	}
	if at < 0 || most <= dangerousWaiters*p.Nodes && !out.On {
		return
	}
	k := p.Keys[at]
	slow := time.Duration(p.SlowBy * float64(k.Latency))
	needed := roundUp(max(2*slow, lease+2*k.Latency))
	if k.Settings.StaleWhileRevalidate >= needed {
		return
	}
	out.StaleWhileRevalidate = needed
	did := "waited for one load"
	if k.Settings.Off {
		did = "would wait for one load, were it cached"
	}
	advice := cache.Advise(p.Rate*p.share(at)/float64(p.Nodes), k.Latency, needed, max(k.Settings.TTL, out.TTL), 1)
	out.Why = append(out.Why, fmt.Sprintf("%d readers of %s %s (%s); %s: %s. %s outlast a load slowed to %s, and a leader's death",
		most, k.Name, did, in, advice.Method, advice.Why, needed, slow))
}

// waiters are those that waited for a load of somebody else's; of a key that is not cached, those that would.
func waiters(k *KeyResult) int {
	if k.NotCached {
		return max(0, k.PeakLoads-1)
	}
	return k.WaitersP99
}

// share of the reads that are the key's.
func (p *Plan) share(key int) float64 {
	sum := 0.0
	for _, k := range p.Keys {
		sum += weight(k)
	}
	return weight(p.Keys[key]) / sum
}

// proposeFailing looks for readers that got the source's error.
func (p *Plan) proposeFailing(r *Report, out *Proposal) {
	run := r.find(FailingSource, Today)
	if run == nil {
		return
	}
	for i, k := range run.Keys {
		if k.Errors > 0 && p.Keys[i].Settings.StaleIfError < outage {
			out.StaleIfError = outage
			out.Why = append(out.Why, fmt.Sprintf("%d reads failed with the source, of %s first: is an old answer better than none?", run.Worst().Errors, k.Key))
			return
		}
	}
}

// with is s as it would be.
func (out *Proposal) with(s Settings) Settings {
	s.Off = false
	s.TTL = max(s.TTL, out.TTL)
	s.StaleWhileRevalidate = max(s.StaleWhileRevalidate, out.StaleWhileRevalidate)
	s.StaleIfError = max(s.StaleIfError, out.StaleIfError)
	return s
}

// roundUp to what people write.
func roundUp(d time.Duration) time.Duration {
	for _, nice := range []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute} {
		if d <= nice {
			return nice
		}
	}
	return d.Truncate(time.Minute) + time.Minute
}
