package redisstore

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// receiptAsked is how long a receipt is asked for; it lives for an
// hour.
const receiptAsked = 50 * time.Minute

// receipt is where a call writes what became of its decisions, together with
// their charges. A lane's calls overwrite it, so there is one for each lane.
type receipt struct {
	key    string
	number int64  // 0: none
	known  string // the marker that its call named
}

// sign gives a call that charges quotas, or gives back, its receipt.
func (n *lane) sign(s *Store, b *batch) {
	if !slices.ContainsFunc(b.parts, func(p *part) bool { return p.giving || p.quotas && !p.settle }) {
		return
	}
	if n.id == "" {
		n.id = rand.Text()
	}
	n.number++
	key := s.o.KeyPrefix + "receipt:" + n.id
	if s.servers.cluster != nil {
		key = s.o.KeyPrefix + "{" + tagOf(b.keys[0]) + "}:receipt:" + n.id
	}
	b.receipt, b.lane = receipt{key: key, number: n.number}, &n.id
}

// lose sees to a call whose answer will not come. Its parts are answered with
// the error and used again, so that what may have to be undone is copied.
func (s *Store) lose(b *batch) {
	lost := s.lossesOf(b)
	s.losses.add(lost)
	if b.receipt.number == 0 {
		return
	}
	var parts []*part
	for _, p := range b.parts {
		parts = append(parts, &part{
			slot: p.slot, settle: p.settle, giving: p.giving,
			groups: slices.Clone(p.groups), counters: slices.Clone(p.counters), index: slices.Clone(p.index),
		})
	}
	r, began := b.receipt, b.began
	r.known = b.known
	*b.lane = "" // the next call's receipt must not overwrite this one
	s.counts.asking.Add(1)
	s.running.Go(func() { s.inquire(r, began, parts, lost) })
}

// inquire asks for a receipt, until Redis can be asked, and gives back what it
// says was charged; what it does not say was given back is owed. Once the call's
// deadline has passed, no receipt means that nothing was, and never will be; not
// where Redis has been restored since, which may have lost it with its receipt.
//
// A store that is closed asks once more. Too soon to take no receipt for an
// answer, it believes one that is there.
func (s *Store) inquire(r receipt, began time.Time, parts []*part, lost []*loss) {
	defer s.counts.asking.Add(-1)
	closing := false
	wait := 2 * s.o.Budget
	for end := time.Now().Add(receiptAsked); !closing && time.Now().Before(end); wait = min(2*wait, time.Second) {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.closing:
			t.Stop()
			closing = true
		}
		statuses, err := s.ask(r, lost)
		switch {
		case err != nil, closing && statuses == "":
			continue
		case statuses == "" && r.known != "" && !s.stillAsOf(parts[0].slot, r.known):
			s.counts.unknown.Add(1) // a restore asks about it
		default:
			s.resolve(lost, r, statuses)
		}
		s.undoLost(statuses, began, parts)
		return
	}
	s.counts.unknown.Add(1)
}

// resolve ends what a receipt, or that there is none, tells of.
func (s *Store) resolve(lost []*loss, r receipt, statuses string) {
	text := strconv.FormatInt(r.number, 10) + ":" + statuses
	for _, one := range s.losses.remove(func(o *loss) bool { return slices.Contains(lost, o) }) {
		if one.proof.of(text) == shown {
			one.charged(s.memory, s.clock.guess(), false)
		}
	}
}

// ask returns the statuses on a receipt, none where another call's is there. It
// reads the totals of what the call was to move at the same instant: a Redis that
// loses them must get back the charge, too, of which no answer told.
func (s *Store) ask(r receipt, lost []*loss) (string, error) {
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	keys, expiries := []string{r.key}, []int64{}
	for _, one := range lost {
		for _, u := range one.units {
			keys = append(keys, u.key, strings.TrimSuffix(u.key, suffixConsumed)+suffixRefunded)
			expiries = append(expiries, u.expiry)
		}
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return "", err
	}
	text, _ := values[0].(string)
	number, statuses, _ := strings.Cut(text, ":")
	if number != strconv.FormatInt(r.number, 10) {
		return "", nil
	}
	for i, expiry := range expiries {
		t := seen{consumed: numberIn(values[2*i+1]), refunded: numberIn(values[2*i+2]), expiry: expiry, at: s.clock.guess().UnixMicro()}
		s.memory.learn(keys[2*i+1], t, r.known, Units{})
	}
	return statuses, nil
}

// numberIn is a number that Redis has, 0 where it has none.
func numberIn(value any) int64 {
	text, _ := value.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > limit.MaxInteger {
		return 0
	}
	return n
}

func (s *Store) undoLost(statuses string, began time.Time, parts []*part) {
	at := 0
	redis, _ := s.clock.redis(began)
	for _, p := range parts {
		p.now = redis.UnixMicro()
		for i := range p.groups {
			p.groups[i].status = statusDenied
			done := at < len(statuses) && statuses[at] == '0'+statusCharged
			switch {
			case p.giving && !done:
				p.groups[i].status = statusLate // or refused: it has not run
			case done && !p.settle:
				p.groups[i].status = statusCharged
			}
			at++
		}
		if p.giving {
			s.owe(p)
			continue
		}
		s.takeBack(p)
	}
}
