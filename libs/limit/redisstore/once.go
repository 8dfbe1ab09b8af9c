package redisstore

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// askedFor is how long the answer of a call is asked for; less than its record
// lives.
const askedFor = 50 * time.Minute

// sign gives a call that charges quotas, or gives back, its record.
func (n *lane) sign(s *Store, b *batch) {
	if !slices.ContainsFunc(b.parts, func(p *part) bool { return p.giving || p.quotas && !p.settle }) {
		return
	}
	if n.id == "" {
		n.id = rand.Text()
	}
	n.number++
	key := s.o.KeyPrefix + "once:" + n.id
	if s.servers.cluster != nil {
		key = s.o.KeyPrefix + "{" + epoch.Tag(b.keys[0]) + "}:once:" + n.id
	}
	b.once = once{key: key, number: n.number}
}

// handOver gives the call to a goroutine that asks for its answer until it is
// known. The lane goes on with a record of its own.
func (n *lane) handOver(l *lanes, b *batch) {
	kept := *b
	*b = batch{}
	n.id = ""
	l.s.counts.asking.Add(1)
	l.s.running.Go(func() { l.askAgain(&kept) })
}

// askAgain sends a call whose answer is lost until it is answered. If the call was
// charged, its record has the answer. If not, it is charged now within its
// deadline, and never after it. A store that is closed asks once more.
func (l *lanes) askAgain(b *batch) {
	s := l.s
	defer s.counts.asking.Add(-1)
	b.resent = true
	wait := 2 * s.o.Budget
	for end, closing := time.Now().Add(askedFor), false; !closing && time.Now().Before(end); wait = min(2*wait, time.Second) {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.closing:
			t.Stop()
			closing = true
		}
		l.calls([]*batch{b})
		if b.took == nil || isReply(b.took) && !b.again {
			break
		}
	}
	b.hand(s)
}
