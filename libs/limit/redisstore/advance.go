package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// Step is a number beside the counters that goes on from one value to another,
// together with a charge: whoever comes second, or does not know how it stands,
// finds another value, and nothing is charged.
type Step struct {
	// Key is the number's, without the deployment's prefix; it begins with the
	// hash tag of the counters. Without a key it is 0; it expires 30 days after it
	// came into being, unless the caller has it expire sooner.
	Key string
	// From and To are 0 to limit.MaxInteger. Where they are equal, the number is
	// looked at only.
	From, To int64
}

// Advance is counters of one slot that are charged all or none, in the very
// step in which the numbers beside them go on.
type Advance struct {
	// Steps are one or more; the first one's key decides the slot.
	Steps []Step
	// Counters may be none. Shadow is not looked at: all of them are judged
	// together, and those with Force pass.
	Counters []limit.Counter
	// At is when the counters without a time of their own count; a quota whose
	// period is another one by Redis's clock is ErrOtherPeriod. Required.
	At time.Time
	// Until is when this may take place last, by Redis's clock; zero is no end.
	Until time.Time
}

// Errors of Advance of which nothing was charged.
var (
	// ErrAdvanced: one of the numbers is not what the step goes on from.
	ErrAdvanced = errors.New("the number has gone on before")
	// ErrOverdue: Redis's clock is past Until.
	ErrOverdue = errors.New("the time for it is over")
	// ErrOtherPeriod: Redis's clock is not in the period of At.
	ErrOtherPeriod = limit.ErrOtherPeriod
)

// Advance decides. Unlike those of Decide, charges whose answer is late or lost
// are not given back: after limit.ErrUnavailable nobody knows whether it took
// place, and the steps' numbers tell, once they can be read. Calling it again is
// therefore safe. Where it is denied, the numbers stay. Waits up to CallTimeout,
// or as long as ctx says. Other errors are those above, limit.ErrCounterBroken,
// and what is wrong with the arguments.
func (s *Store) Advance(ctx context.Context, v Advance) (limit.Decision, error) {
	if err := s.checkAdvance(&v); err != nil {
		return limit.Decision{}, fmt.Errorf("advance: %w", err)
	}
	a := s.askPool.Get().(*asking)
	defer func() {
		a.reset(s)
		s.askPool.Put(a)
	}()
	a.started, a.patient = s.now(), true
	a.layAdvance(s, &v)
	a.ask(ctx, s, a.parts)
	p := a.parts[0]
	if p == nil {
		return limit.Decision{}, fmt.Errorf("advance: %w", errNoAnswer)
	}
	d := limit.Decision{Now: time.UnixMicro(p.now).UTC(), States: freeStates(v.Counters)}
	g := &p.groups[0]
	if p.err == nil {
		switch g.status {
		case statusSettled:
			return d, fmt.Errorf("advance %s: %w", v.Steps[0].Key, ErrAdvanced)
		case statusLate:
			return d, fmt.Errorf("advance %s: %w", v.Steps[0].Key, ErrOverdue)
		case statusWrongPeriod:
			return d, fmt.Errorf("advance %s: %w", v.Steps[0].Key, ErrOtherPeriod)
		}
	}
	if err := p.fill(g, d.States); err != nil {
		return limit.Decision{}, fmt.Errorf("advance %s: %w", v.Steps[0].Key, err)
	}
	d.Allowed = g.status == statusCharged
	return d, nil
}

// Together reports whether what two keys name can be part of one Advance.
func Together(client redis.UniversalClient, a, b string) bool {
	_, cluster := client.(*redis.ClusterClient)
	return !cluster || epoch.SlotOf(a) == epoch.SlotOf(b)
}

func (s *Store) checkAdvance(v *Advance) error {
	switch {
	case len(v.Steps) == 0:
		return errors.New("no steps")
	case v.At.IsZero():
		return errors.New("no time")
	}
	slot := s.servers.slot(v.Steps[0].Key)
	for _, st := range v.Steps {
		if st.From < 0 || st.From > limit.MaxInteger || st.To < 0 || st.To > limit.MaxInteger {
			return fmt.Errorf("step of %s from %d to %d: not in 0 to 2^53", st.Key, st.From, st.To)
		}
		if s.servers.slot(st.Key) != slot {
			return fmt.Errorf("step of %s lies in another slot", st.Key)
		}
	}
	for i := range v.Counters {
		c := &v.Counters[i]
		if err := c.Check(); err != nil {
			return err
		}
		if s.servers.slot(c.Key) != slot {
			return fmt.Errorf("counter %s lies in another slot", c.Key)
		}
	}
	return nil
}

// layAdvance makes one group of the counters, behind a guard for each step.
func (a *asking) layAdvance(s *Store, v *Advance) {
	p := a.part(s, 0, s.servers.slot(v.Steps[0].Key))
	p.settle, p.marked = true, true
	if !v.Until.IsZero() {
		p.until = v.Until.UnixMicro()
	}
	p.begin(false)
	repeated := false
	for i := range v.Steps {
		repeated = p.step(s.o.KeyPrefix, &v.Steps[i]) || repeated
	}
	for i := range v.Counters {
		if c := &v.Counters[i]; !isFree(c) {
			repeated = p.add(s.o.KeyPrefix, c, i, v.At) || repeated
		}
	}
	p.end(repeated)
}

// step has the group go on only from where a number is.
func (p *part) step(prefix string, st *Step) (repeated bool) {
	at, repeated := p.guard(prefix+st.Key, st.From, st.To)
	p.steps = append(p.steps, stepAt{at, st.To})
	return repeated
}
