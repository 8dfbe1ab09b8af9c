package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// lostKey, with a restore's marker behind it, is a hash of what gateways say in
// that restore of calls that were lost together with Redis: by their names, an
// account each.
const lostKey = "lost:"

// lostFor is how long such a hash outlives its restore.
const lostFor = time.Hour

// account is what a gateway says in a restore. A call whose answer was lost, and
// whose proof went with the Redis that had it, may be in the totals that others
// were answered. Whether it is they find out together: of the way between two
// totals of a quota each says how much was its own, and what is nobody's is what
// lost calls charged.
type account struct {
	// Began is when the process did, µs of Redis's clock: what one of its name
	// charged before it does not know.
	Began int64 `json:"began"`
	// PeersSince and Peers are the gateways that it saw, and when each was there
	// last; µs of Redis's clock.
	PeersSince int64            `json:"peersSince"`
	Peers      map[string]int64 `json:"peers"`
	// Lost are the units of its own lost calls.
	Lost []lostCall `json:"lost,omitempty"`
	// Heard are the gateways whose lost calls it has looked up; Shares is what it
	// knows of their quotas, by question.
	Heard  []string         `json:"heard,omitempty"`
	Shares map[string]share `json:"shares,omitempty"`
}

// lostCall is what one lost call was to move.
type lostCall struct {
	// Counter is the quota's identity, without a deployment's prefix.
	Counter string `json:"counter"`
	// Marker is the one that the call named, Since when it was sent, µs of Redis's
	// clock, and Units by how much it may have moved the quota.
	Marker string `json:"marker"`
	Since  int64  `json:"since"`
	Units  Units  `json:"units"`
}

// question names what is asked of a quota: who moved it under a marker since a time.
type question struct{ counter, marker string }

func (q question) String() string { return q.marker + " " + q.counter }

// questions are those of all accounts, each with the earliest time that anybody
// asks of, and who asks anything.
func questions(accounts map[string]account) (since map[question]int64, asked []string) {
	since = map[question]int64{}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		lost := accounts[name].Lost
		if len(lost) > 0 {
			asked = append(asked, name)
		}
		for _, c := range lost {
			q := question{c.Counter, c.Marker}
			if at, ok := since[q]; !ok || c.Since < at {
				since[q] = c.Since
			}
		}
	}
	return since, asked
}

// openAccount begins this process's account of a restore, by what the process
// that is restored has of its lost calls.
func (s *Store) openAccount(ctx context.Context, p *process, marker string, seen *peers) (account, error) {
	open, err := s.judge(ctx, p.slots, marker)
	if err != nil {
		return account{}, fmt.Errorf("look up lost calls: %w", err)
	}
	began, _ := s.clock.redis(s.began)
	a := account{Began: began.UnixMicro(), PeersSince: seen.since, Peers: maps.Clone(seen.last)}
	for _, one := range open {
		for _, u := range one.units {
			counter := strings.TrimSuffix(strings.TrimPrefix(u.key, s.o.KeyPrefix), suffixConsumed)
			a.Lost = append(a.Lost, lostCall{counter, one.marker, one.since, u.Units})
		}
	}
	return a, s.tell(ctx, p, marker, &a)
}

func (s *Store) tell(ctx context.Context, p *process, marker string, a *account) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write account: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	defer cancel()
	key := besides(s.o.KeyPrefix, s.servers.cluster != nil, p.home(), lostKey+marker)
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, key, s.o.Name, text)
		pipe.Expire(ctx, key, lostFor)
		return nil
	})
	if err != nil {
		return fmt.Errorf("tell of lost calls: %w", err)
	}
	return nil
}

// answerLost looks up what others ask in a restore, and adds it to the account.
func (s *Store) answerLost(ctx context.Context, p *process, marker string, a *account) error {
	reading, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	defer cancel()
	accounts, err := readAccounts(reading, s.client, besides(s.o.KeyPrefix, s.servers.cluster != nil, p.home(), lostKey+marker))
	if err != nil {
		return err
	}
	since, asked := questions(accounts)
	if slices.Equal(asked, a.Heard) {
		return nil
	}
	a.Heard, a.Shares = asked, make(map[string]share, len(since))
	for q, at := range since {
		a.Shares[q.String()] = s.memory.since(s.o.KeyPrefix+q.counter+suffixConsumed, q.marker, at)
	}
	if err := s.tell(ctx, p, marker, a); err != nil {
		a.Heard = nil // it is told anew
		return err
	}
	return nil
}

func readAccounts(ctx context.Context, client redis.UniversalClient, key string) (map[string]account, error) {
	fields, err := client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("read what is said of lost calls: %w", err)
	}
	accounts := make(map[string]account, len(fields))
	for name, text := range fields {
		var a account
		if json.Unmarshal([]byte(text), &a) == nil { // one that cannot be read is none
			accounts[name] = a
		}
	}
	return accounts, nil
}
