package sales

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"
)

// answers keeps what top-ups were answered in Redis, so that a repetition need
// not ask Postgres, and marks those that are under way, so that twins wait for
// each other. It decides nothing: whatever is lost here, or cannot be asked, is
// found or refused by the unique constraint in Postgres.
type answers struct {
	redis  redis.UniversalClient // nil keeps nothing
	prefix string
}

const (
	// answerLife is how long a repetition is answered from Redis.
	answerLife = 24 * time.Hour
	// pendingLife outlives a request that is under way, and ends the mark of one
	// that died.
	pendingLife = 10 * time.Second
	// twinPatience is how long a twin waits for the first one's answer here.
	twinPatience = 300 * time.Millisecond
	twinPause    = 20 * time.Millisecond
	// redisPatience bounds each call: a top-up can do without.
	redisPatience = 250 * time.Millisecond

	pendingMark = "pending"
)

// finished is what the first request with a key was answered, and what it asked.
type finished struct {
	Request []byte `json:"request"` // SHA-256
	TopUp   TopUp  `json:"answer"`
}

// answers reports whether t asks for what the first request asked for.
func (f *finished) answers(t *topUp) bool { return bytes.Equal(f.Request, t.sum[:]) }

// key is one of the customer's keys; both may hold any character.
func (a *answers) key(t *topUp) string {
	sum := sha256.Sum256([]byte(t.customer + "\x00" + t.key))
	return a.prefix + "topup:" + hex.EncodeToString(sum[:])
}

// await returns the finished answer, nil if none came to be known in time. It
// leaves a mark where there is none; mine says so.
func (a *answers) await(ctx context.Context, t *topUp) (known *finished, mine bool) {
	if a.redis == nil {
		return nil, false
	}
	known, absent := a.look(ctx, t)
	if known != nil {
		return known, false
	}
	if absent {
		call, cancel := context.WithTimeout(ctx, redisPatience)
		defer cancel()
		err := a.redis.SetArgs(call, a.key(t), pendingMark, redis.SetArgs{Mode: "NX", TTL: pendingLife}).Err()
		if err != redis.Nil { // marked, or nobody knows
			return nil, err == nil
		}
	}
	return a.awaitTwin(ctx, t), false
}

func (a *answers) awaitTwin(ctx context.Context, t *topUp) *finished {
	tick := time.NewTicker(twinPause)
	defer tick.Stop()
	for range twinPatience / twinPause {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if known, absent := a.look(ctx, t); known != nil || absent {
			return known
		}
	}
	return nil
}

// look reads the answer; absent also where it cannot be read, as nobody is to
// wait for a Redis that is away.
func (a *answers) look(ctx context.Context, t *topUp) (known *finished, absent bool) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	text, err := a.redis.Get(ctx, a.key(t)).Result()
	if err != nil {
		return nil, true
	}
	if text == pendingMark {
		return nil, false
	}
	known = new(finished)
	if json.Unmarshal([]byte(text), known) != nil {
		return nil, true
	}
	return known, false
}

// keep stores an answer that was committed.
func (a *answers) keep(ctx context.Context, t *topUp, f *finished) {
	text, err := json.Marshal(f)
	if err != nil || a.redis == nil {
		return // Postgres has it
	}
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	_ = a.redis.Set(ctx, a.key(t), text, answerLife).Err() // as above
}

// forget takes back this request's own mark: the next one need not wait.
func (a *answers) forget(ctx context.Context, t *topUp) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisPatience)
	defer cancel()
	_ = a.redis.Del(ctx, a.key(t)).Err() // else it dies by its TTL
}
