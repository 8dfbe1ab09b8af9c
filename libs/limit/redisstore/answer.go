package redisstore

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/state"
)

// Statuses of the script's answers.
const (
	statusDenied = iota
	statusCharged
	statusWrongPeriod
	statusLate
	statusBroken
	statusSettled
	statusRestore
)

// judge makes the decision of what the parts answered. Counters judged apart
// cannot fail it where others are asked, too.
func (a *asking) judge(counters []limit.Counter) (limit.Decision, error) {
	d := limit.Decision{Allowed: true, States: make([]limit.State, len(counters))}
	var failed, apart error
	enforced := false
	for i := range counters {
		c := &counters[i]
		if isFree(c) {
			d.States[i] = freeState(c)
			continue
		}
		// Until an answer says otherwise.
		d.States[i] = limit.State{Key: c.Key, Shadow: c.Shadow, Broken: true}
		enforced = enforced || !c.Apart()
	}
	for _, p := range a.parts {
		if p == nil {
			failed, apart = errNoAnswer, errNoAnswer
			continue
		}
		d.Now = time.UnixMicro(max(p.now, d.Now.UnixMicro())).UTC()
		for i := range p.groups {
			g := &p.groups[i]
			if g.again {
				continue
			}
			err := p.fill(g, d.States)
			switch {
			case err != nil && g.apart:
				apart = err
			case err != nil:
				failed = err
			case !g.apart && g.status == statusDenied:
				d.Allowed = false
			}
		}
	}
	if !enforced {
		failed = apart
	} else if failed == errNoAnswer && a.answered(counters) {
		failed = nil // only counters judged apart were not heard of
	}
	return d, failed
}

// answered reports whether every enforced counter was answered.
func (a *asking) answered(counters []limit.Counter) bool {
	left := 0
	for i := range counters {
		if c := &counters[i]; !isFree(c) && !c.Apart() {
			left++
		}
	}
	for _, p := range a.parts {
		if p == nil || p.err != nil {
			continue
		}
		for _, g := range p.groups {
			if !g.apart && !g.again {
				left -= g.to - g.from
			}
		}
	}
	return left == 0
}

var errRestoring = fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, limit.ErrRestoring)

// fill sets the states of a group's counters.
func (p *part) fill(g *group, states []limit.State) error {
	switch {
	case p.err != nil:
		return p.err
	case g.status == statusBroken:
		return fmt.Errorf("decide: one of %d counters from %q: %w", g.to-g.from, p.counters[g.from].Key, limit.ErrCounterBroken)
	case g.status == statusRestore:
		return errRestoring
	case g.status == statusWrongPeriod:
		return fmt.Errorf("decide: %w: %w at %s", limit.ErrUnavailable, limit.ErrOtherPeriod, time.UnixMicro(p.now).UTC())
	case g.status != statusDenied && g.status != statusCharged:
		return fmt.Errorf("decide: status %d at %s: %w", g.status, time.UnixMicro(p.now).UTC(), limit.ErrUnavailable)
	}
	at := g.at
	for i := g.from; i < g.to; i++ {
		n := answers(&p.counters[i])
		v := state.Values{Now: p.now, A: get(p.reply, at+1), B: get(p.reply, at+2)}
		if n == 4 {
			v.C = get(p.reply, at+3)
		}
		v.Fill(&states[p.index[i]], &p.counters[i], &p.bounds[i], get(p.reply, at) == 1)
		at += n
	}
	return nil
}

func freeStates(counters []limit.Counter) []limit.State {
	states := make([]limit.State, len(counters))
	for i := range counters {
		states[i] = freeState(&counters[i])
	}
	return states
}

func freeState(c *limit.Counter) limit.State {
	st := limit.State{Key: c.Key, Allowed: true, Unlimited: c.Unlimited, Shadow: c.Shadow}
	if !c.Unlimited {
		st.Limit = c.Limit
	}
	return st
}
