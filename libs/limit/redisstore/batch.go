package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
)

func (b *batch) reset() {
	clear(b.parts)
	clear(b.keys)
	clear(b.args)
	clear(b.places)
	b.parts, b.keys, b.args, b.body = b.parts[:0], b.keys[:0], b.args[:0], b.body[:0]
	b.counters, b.text, b.again, b.took, b.reply, b.first = 0, false, false, nil, "", time.Time{}
	b.epochKey, b.epoch, b.once, b.resent, b.moved = "", "", once{}, false, false
}

// fits reports whether the part can travel along; the first one always does.
func (b *batch) fits(p *part) bool {
	return len(b.parts) == 0 || b.slot == p.slot && b.counters+len(p.counters) <= batchCounters
}

func (b *batch) add(p *part) {
	b.slot, b.counters, b.parts = p.slot, b.counters+len(p.counters), append(b.parts, p)
}

// lay joins the parts' keys and numbers. The kinds of the keys come first, so
// it names the keys before it copies the numbers. A key that two parts take for
// different kinds is named for each, and will be broken for one of them.
func (b *batch) lay(s *Store) {
	if b.places == nil {
		b.places = map[keyKind]int{}
	}
	for _, p := range b.parts {
		for i, key := range p.keys {
			at := keyKind{key, p.kinds[i]}
			if _, ok := b.places[at]; !ok {
				b.keys = append(b.keys, key)
				b.places[at] = len(b.keys)
				b.body = binary.LittleEndian.AppendUint64(b.body, math.Float64bits(float64(p.kinds[i])))
			}
		}
	}
	for _, p := range b.parts {
		if p.marked && b.epochKey == "" {
			b.epochKey = s.servers.epochKey(b.slot)
		}
		from := len(b.body)
		b.body = append(b.body, p.body...)
		for _, at := range p.places {
			i := p.keyAt(at)
			put(b.body, from+at, int64(b.places[keyKind{p.keys[i], p.kinds[i]}]))
		}
	}
}

// stamp notes when the parts are sent, to which process, and until when they may
// be charged. Settlements may be charged whenever, but what is owed where it is
// not done must not be done afterwards. A call whose answer is asked for stays as
// it was.
func (b *batch) stamp(s *Store, runID string) {
	b.began = s.now()
	if b.resent {
		if !s.o.Proxied && (runID == "" || !strings.HasPrefix(b.epoch, runID)) {
			b.epoch = noEpoch // the process that it was sent to is gone
		}
		return
	}
	b.epoch = s.servers.epochFor(b.slot, runID)
	if b.first.IsZero() {
		b.first = b.began
	}
	deadline, known := s.clock.redis(b.began.Add(s.o.Budget))
	from := 8 * len(b.keys)
	for _, p := range b.parts {
		p.sent.Store(b.began.UnixNano())
		for _, at := range p.deadlines {
			switch {
			case p.until > 0:
				put(b.body, from+at, p.until)
			case known && (p.giving || !p.settle):
				put(b.body, from+at, deadline.UnixMicro())
			}
		}
		from += len(p.body)
	}
}

// command returns the call as it is to be sent next.
func (b *batch) command(s *Store) charge {
	keys := len(b.keys)
	if b.once.number > 0 {
		keys++
	}
	if b.epochKey != "" {
		keys++
	}
	b.args = append(b.args[:0], "evalsha", s.sha, keys)
	if b.text {
		b.args[0], b.args[1] = "eval", s.text
	}
	for i := range b.keys {
		b.args = append(b.args, &b.keys[i])
	}
	if b.once.number > 0 {
		b.args = append(b.args, b.once.key)
	}
	if b.epochKey != "" {
		b.args = append(b.args, b.epochKey)
	}
	named := ""
	if b.epochKey != "" {
		named = b.epoch
	}
	b.args = append(b.args, b.body, named, b.once.number)
	if s.o.Proxied {
		b.args = append(b.args, 1)
	}
	cmd := redis.NewCmd(s.background, b.args...)
	cmd.SetFirstKeyPos(3)
	return charge{cmd}
}

// take keeps the answer of a call, and reports whether it is to be sent again.
func (b *batch) take(l *lanes, cmd charge) (again bool) {
	err := cmd.Err()
	switch {
	case err == nil:
		l.breaker.Answered(b.began)
		b.reply, b.took = "", nil
		text, err := cmd.Text()
		if err != nil {
			b.took = fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, err)
			return false
		}
		b.reply = text
		l.s.clock.learn(b.began, l.s.now(), get(text, 0))
		return false
	case isReply(err):
		l.breaker.Answered(b.began)
	default:
		l.breaker.Failed(b.began, isTimeout(err))
	}
	b.took = fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, err)
	switch {
	case redis.HasErrorPrefix(err, "NOSCRIPT"):
		b.text = true
		return true
	case redirected(err) && l.s.servers.cluster != nil:
		b.moved = true
		l.s.servers.routes[b.slot].Store(nil)
		return true
	}
	return provesNothingRan(err) || errors.Is(err, errOtherProcess) || errors.Is(err, redis.ErrClosed)
}

// waited reports whether the batch may be sent again after a pause: within the
// budget, and while somebody waits for it.
func (b *batch) waited(s *Store, pause time.Duration) bool {
	if s.now().Add(pause).Sub(b.first) >= s.o.Budget {
		return false
	}
	for _, p := range b.parts {
		if p.state.Load() == partWaiting || p.settle {
			return true
		}
	}
	return false
}

var errAnswer = errors.New("answer is cut short")

// hand gives each part its share of the answer.
func (b *batch) hand(s *Store) {
	at, lost := 1, b.resent && b.took != nil || b.lost()
	for _, p := range b.parts {
		p.err, p.reply, p.lost = b.took, b.reply, lost
		if lost {
			s.unknown(p)
		}
		if p.err == nil {
			p.now = get(b.reply, 0)
			at = p.locate(at)
			if at*8 > len(b.reply) {
				p.err = fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, errAnswer)
			} else if p.marked {
				s.heard(b, p)
			}
		}
		if !p.answer() {
			s.settleLate(p)
		}
	}
}

// heard keeps what the answer to a call says of quotas, before anybody acts upon
// it.
func (s *Store) heard(b *batch, p *part) {
	p.learn(s.memory)
	for i := range p.groups {
		if p.groups[i].status != statusRestore {
			continue
		}
		s.counts.restoring.Add(1)
		s.notice()
		if b.resent && !p.lost {
			// Its record may be lost with the process that had it.
			p.lost = true
			s.unknown(p)
		}
	}
}

// unknown counts a part of which nobody knows whether it was charged. What it may
// have charged stays charged: a counter is too high by it, never too low.
func (s *Store) unknown(p *part) {
	if p.giving || p.quotas && !p.settle { // who settles asks again
		s.counts.unknown.Add(1)
	}
}

// lost reports a call that was sent, and not answered.
func (b *batch) lost() bool { return b.took != nil && !isReply(b.took) && !notSent(b.took) }

// decisions is how many decisions wait for the call.
func (b *batch) decisions() (n uint64) {
	for _, p := range b.parts {
		if !p.settle {
			n++
		}
	}
	return n
}

// errNotSent is of calls for which there was no connection.
var errNotSent = errors.New("no connection")

func notSent(err error) bool {
	for _, before := range []error{errNotSent, errOtherProcess, redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted} {
		if errors.Is(err, before) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// locate reads the statuses of the part's groups, which begin at a number of
// the reply, and returns where the next part's begin.
func (p *part) locate(at int) int {
	for i := range p.groups {
		g := &p.groups[i]
		g.status, g.at = int(get(p.reply, at)), at+1
		if at++; g.status > statusCharged {
			continue
		}
		g.at += guardAnswers * g.guards
		at += guardAnswers * g.guards
		for j := g.from; j < g.to; j++ {
			at += answers(&p.counters[j])
		}
	}
	return at
}

// guardAnswers is how many numbers the script says of a guard.
const guardAnswers = 3

// answers is how many numbers the script says of a counter.
func answers(c *limit.Counter) int {
	if c.Algorithm == limit.SlidingWindow || c.Wallet() || c.Rolls() {
		return 4
	}
	return 3
}
