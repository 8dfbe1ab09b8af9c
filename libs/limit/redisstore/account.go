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
// that restore of calls that were lost together with Redis: an account of each of
// their processes.
const lostKey = "lost:"

// accountMost is how long an account is at most, in bytes.
const accountMost = 8 << 20

// lostFor is how long such a hash outlives its restore.
const lostFor = time.Hour

// account is what a gateway says in a restore. A call whose answer was lost, and
// whose proof went with the Redis that had it, may be in the totals that others
// were answered. Whether it is they find out together: of the way between two
// totals of a quota each says how much was its own, and what is nobody's is what
// lost calls charged.
type account struct {
	// Began is when the process looked at Redis first, µs of Redis's clock: what one
	// of its name charged before it does not know.
	Began int64 `json:"began"`
	// PeersSince and Peers are the gateways that it saw, and when each was there
	// last; µs of Redis's clock.
	PeersSince int64            `json:"peersSince"`
	Peers      map[string]int64 `json:"peers"`
	// Lost are the units of its own lost calls.
	Lost []lostCall `json:"lost,omitempty"`
	// Heard are the accounts that were there when it looked up what they ask of,
	// and what became of its own lost calls by what their processes had handed in.
	// Shares is what it knows of their quotas, by question.
	Heard  []string         `json:"heard,omitempty"`
	Shares map[string]share `json:"shares,omitempty"`

	losses []*loss // of Lost, in order
}

// accountOf names a process's account by the gateway's name and what tells it
// from others that have that name; gatewayOf is that name.
func accountOf(gateway, instance string) string { return gateway + "#" + instance }

func gatewayOf(account string) string { return account[:max(0, strings.LastIndexByte(account, '#'))] }

// lostCall is what one lost call was to move.
type lostCall struct {
	// Counter is the quota's identity, without a deployment's prefix.
	Counter string `json:"counter"`
	// Marker is the one that the call named, Since when it was sent, µs of Redis's
	// clock, and Units by how much it may have moved the quota; none where its
	// proof has come back meanwhile.
	Marker string `json:"marker"`
	Since  int64  `json:"since"`
	Units  Units  `json:"units"`
}

// question names what is asked of a quota: who moved it under a marker since a time.
type question struct{ counter, marker string }

func (q question) String() string { return q.marker + " " + q.counter }

// questions are those of all accounts, each with the earliest time that anybody
// asks of.
func questions(accounts map[string]account) map[question]int64 {
	since := map[question]int64{}
	for _, a := range accounts {
		for _, c := range a.Lost {
			q := question{c.Counter, c.Marker}
			if at, ok := since[q]; !ok || c.Since < at {
				since[q] = c.Since
			}
		}
	}
	return since
}

// openAccount begins this process's account of a restore, by what the process
// that is restored has of its lost calls.
func (s *Store) openAccount(ctx context.Context, p *process, marker string, seen *peers) (account, error) {
	open, err := s.judge(ctx, p.slots, marker)
	if err != nil {
		return account{}, fmt.Errorf("look up lost calls: %w", err)
	}
	a := account{Began: seen.began, PeersSince: seen.since, Peers: maps.Clone(seen.last)}
	for _, one := range open {
		for _, u := range one.units {
			counter := strings.TrimSuffix(strings.TrimPrefix(u.key, s.o.KeyPrefix), suffixConsumed)
			a.Lost, a.losses = append(a.Lost, lostCall{counter, one.marker, one.since, u.Units}), append(a.losses, one)
		}
	}
	return a, s.tell(ctx, p, marker, &a)
}

// judgeAgain takes out of an account what others have handed in a proof of since.
func (s *Store) judgeAgain(ctx context.Context, p *process, marker string, a *account) error {
	if len(a.Lost) == 0 {
		return nil
	}
	open, err := s.judge(ctx, p.slots, marker)
	if err != nil {
		return fmt.Errorf("look up lost calls: %w", err)
	}
	for i, one := range a.losses {
		if !slices.Contains(open, one) {
			a.Lost[i].Units = Units{}
		}
	}
	return nil
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
		pipe.HSet(ctx, key, accountOf(s.o.Name, s.instance), text)
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
	all := slices.Sorted(maps.Keys(accounts))
	if slices.Equal(all, a.Heard) {
		return nil
	}
	if err := s.judgeAgain(ctx, p, marker, a); err != nil {
		return err
	}
	since, dropped := questions(accounts), s.losses.dropped.Load()
	a.Heard, a.Shares = all, make(map[string]share, len(since))
	for q, at := range since {
		known := s.memory.since(s.o.KeyPrefix+q.counter+suffixConsumed, q.marker, at)
		known.Partial = known.Partial || dropped
		a.Shares[q.String()] = known
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
		if len(text) > accountMost || json.Unmarshal([]byte(text), &a) != nil || len(a.Lost) > lossesKept {
			a = account{} // it has heard nobody, so that nothing is known
		}
		accounts[name] = a
	}
	return accounts, nil
}
