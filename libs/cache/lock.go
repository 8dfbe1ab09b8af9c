package cache

import (
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
)

//go:embed scripts/get.lua
var getText string

//go:embed scripts/renew.lua
var renewText string

//go:embed scripts/write.lua
var writeText string

//go:embed scripts/fail.lua
var failText string

//go:embed scripts/invalidate.lua
var invalidateText string

//go:embed scripts/epoch.lua
var epochText string

var (
	getScript        = redis.NewScript(getText)
	renewScript      = redis.NewScript(renewText)
	writeScript      = redis.NewScript(writeText)
	failScript       = redis.NewScript(failText)
	invalidateScript = redis.NewScript(invalidateText)
	epochScript      = redis.NewScript(epochText)
)

// Statuses of get.lua.
const (
	statusNone = iota
	statusValue
	statusLeader
	statusLocked
	statusFailed
	statusUncacheable
)

// Statuses of write.lua.
const (
	writeLost = iota
	writeStored
	writeSuperseded
)

// silences is how many time-outs without any answer are an outage.
const silences = 3

// failureMemory is how long failures in a row are counted after the last one's delay.
const failureMemory = time.Minute

// l2 is the fleet's part: values, locks and barriers in Redis. All of a key's records share its hash tag. It is safe for
// concurrent use. Its breaker answers errRedisDown at once while Redis is down.
type l2 struct {
	client  redis.UniversalClient
	prefix  string // of keys, with the family
	channel string
	timeout time.Duration
	lease   time.Duration
	breaker *breaker.Breaker
	token   string // of this Cache
	runs    atomic.Uint64
}

func newL2(client redis.UniversalClient, prefix string, timeout, lease time.Duration, beat *breaker.Heartbeat) *l2 {
	return &l2{
		client: client, prefix: prefix, channel: prefix + "events", timeout: timeout, lease: lease, token: rand.Text(),
		// One slow call is no outage: without the lock every process would load.
		breaker: breaker.New(breaker.Options{Errors: 3, Silence: silences * timeout, Heartbeat: beat}),
	}
}

var tagEscaper = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// keys are the key's records: value, barrier, failure, lock.
func (s *l2) keys(key string) []string {
	base := s.prefix + "{" + tagEscaper.Replace(key) + "}:"
	return []string{base + "v", base + "b", base + "f", base + "l"}
}

// lockText is what a lock of that run holds.
func lockText(fence int64, owner string) string { return fmt.Sprintf("l%016d%s", fence, owner) }

// owner names a new run as the owner of locks: not the process, whose read and refresh flights are apart.
func (s *l2) owner() string { return s.token + "-" + strconv.FormatUint(s.runs.Add(1), 36) }

// answer is what get.lua found.
type answer struct {
	status  int
	fence   int64 // of the value, the new lock, the running run, or the failure
	value   string
	left    time.Duration // of the value's physical TTL
	barrier barrier
	failure failure
	lockFor time.Duration // until the lease ends
	now     int64         // Redis's clock, µs
}

// barrier is the last invalidation: values of earlier runs are stale since then, or cleared.
type barrier struct {
	fence, since int64 // µs of Redis's clock
	hard         bool
}

// failure is how the last run without a value ended.
type failure struct {
	kind  byte // f failed, u uncacheable, p private
	fence int64
	count int // failures in a row
	text  string
}

func (f failure) encode() string {
	return fmt.Sprintf("%c%016d%06d%s", f.kind, f.fence, min(f.count, 999999), f.text)
}

func decodeFailure(s string) failure {
	if len(s) < 23 {
		return failure{}
	}
	fence, _ := strconv.ParseInt(s[1:17], 10, 64)
	count, _ := strconv.Atoi(s[17:23])
	return failure{kind: s[0], fence: fence, count: count, text: s[23:]}
}

func decodeBarrier(s string) barrier {
	if len(s) != 33 {
		return barrier{}
	}
	fence, _ := strconv.ParseInt(s[1:17], 10, 64)
	since, _ := strconv.ParseInt(s[17:], 10, 64)
	return barrier{fence: fence, since: since, hard: s[0] == 'h'}
}

// get reads a key's state; with take it takes the lock where nothing newer than seen is fresh. want is the run that the
// caller has waited for: its outcome is answered, fresh or not.
func (s *l2) get(ctx context.Context, key, owner string, take bool, seen, want int64) (answer, error) {
	var a answer
	err := s.call(ctx, func(ctx context.Context) error {
		raw, err := getScript.Run(ctx, s.client, s.keys(key), s.getArgs(owner, take, seen, want)...).Slice()
		if err != nil {
			return err
		}
		a, err = decodeAnswer(raw)
		return err
	})
	return a, err
}

func (s *l2) getArgs(owner string, take bool, seen, want int64) []any {
	t := 0
	if take {
		t = 1
	}
	return []any{t, owner, s.lease.Milliseconds(), seen, want, failureMemory.Milliseconds()}
}

func decodeAnswer(raw []any) (answer, error) {
	if len(raw) != 9 {
		return answer{}, errEnvelope
	}
	number := func(i int) int64 { n, _ := raw[i].(int64); return n }
	text := func(i int) string { t, _ := raw[i].(string); return t }
	ms := func(i int) time.Duration { return time.Duration(number(i)) * time.Millisecond }
	return answer{
		status: int(number(0)), fence: number(1), value: text(2), left: ms(3),
		barrier: decodeBarrier(text(4)), failure: decodeFailure(text(5)),
		lockFor: ms(7), now: number(8),
	}, nil
}

// renew reports whether the lock is still the run's.
func (s *l2) renew(ctx context.Context, key, owner string, fence int64) (mine bool, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		n, err := renewScript.Run(ctx, s.client, s.keys(key)[3:], lockText(fence, owner), s.lease.Milliseconds()).Int()
		mine = n == 1
		return err
	})
	return mine, err
}

// write stores e under the run of its fence and ends the run; when superseded the run goes on under the fence returned.
func (s *l2) write(ctx context.Context, key, owner string, e *envelope) (status int, fence int64, err error) {
	err = s.insist(ctx, func(ctx context.Context) error {
		reply, err := writeScript.Run(ctx, s.client, s.keys(key), lockText(e.fence, owner), e.encode(),
			max(1, e.physical.Milliseconds()), s.lease.Milliseconds(), owner, s.channel, wakeMessage(e.fence, key)).Int64Slice()
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return errEnvelope
		}
		status, fence = int(reply[0]), reply[1]
		return nil
	})
	return status, fence, err
}

// fail ends a run without a value; the record is kept for ttl.
func (s *l2) fail(ctx context.Context, key, owner string, f failure, ttl time.Duration) error {
	return s.insist(ctx, func(ctx context.Context) error {
		keys := s.keys(key)
		return failScript.Run(ctx, s.client, keys[2:], lockText(f.fence, owner), f.encode(),
			max(1, ttl.Milliseconds()), s.channel, wakeMessage(f.fence, key)).Err()
	})
}

// invalidate raises the key's barrier for at least ttl and tells all processes.
func (s *l2) invalidate(ctx context.Context, key string, hard bool, ttl time.Duration) (fence int64, err error) {
	kind := "s"
	if hard {
		kind = "h"
	}
	err = s.call(ctx, func(ctx context.Context) error {
		// First the epoch: whoever loses the message finds that the count differs.
		if err := epochScript.Run(ctx, s.client, []string{s.epochKey()}, 1).Err(); err != nil {
			return err
		}
		fence, err = invalidateScript.Run(ctx, s.client, s.keys(key), kind, ttl.Milliseconds(), s.channel, key).Int64()
		return err
	})
	return fence, err
}

func (s *l2) epochKey() string { return s.prefix + epochName }

const epochName = "epoch"

// EpochKey is the key that counts a family's invalidations: the only one of a family that never expires by itself.
func EpochKey(prefix, family string) string { return prefix + family + ":" + epochName }

// epoch is the number of invalidations so far.
func (s *l2) epoch(ctx context.Context) (n int64, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		n, err = epochScript.Run(ctx, s.client, []string{s.epochKey()}, 0).Int64()
		return err
	})
	return n, err
}

// errRedisDown wraps every reason why Redis could not be asked.
var errRedisDown = errors.New("redis is down")

// call makes one bounded call through the breaker. What Redis answered as an error (NOSCRIPT is handled below, so: a
// misconfiguration) is away to the caller, but a sign of life to the breaker.
func (s *l2) call(ctx context.Context, do func(context.Context) error) error {
	ok, probe := s.breaker.Allow()
	if !ok && !probe {
		return errRedisDown
	}
	// A caller's cancellation must not look like Redis's silence, nor break a connection in mid-reply.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	began := time.Now()
	err := do(ctx)
	answered := err == nil || isRedisError(err)
	switch {
	case probe:
		s.breaker.Probed(began, answered)
	case answered:
		s.breaker.Answered(began)
	default:
		s.breaker.Failed(began, errors.Is(err, context.DeadlineExceeded) || isTimeout(err))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRedisDown, err)
	}
	return nil
}

// insist makes a call that may be made twice again when no answer came: a leader's last word is worth more than one
// try, others wait for it.
func (s *l2) insist(ctx context.Context, do func(context.Context) error) error {
	const tries = 3
	var err error
	for range tries {
		if err = s.call(ctx, do); err == nil || !unanswered(err) || !s.breaker.Closed() {
			break
		}
	}
	return err
}

// unanswered reports a failure that says nothing about Redis but that this call got no answer.
func unanswered(err error) bool { return err != nil && !isRedisError(err) }

// isRedisError reports an answer that Redis gave; one that says it cannot serve is no such answer.
func isRedisError(err error) bool {
	var re redis.Error
	if !errors.As(err, &re) {
		return errors.Is(err, errEnvelope)
	}
	for _, prefix := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN"} {
		if strings.HasPrefix(re.Error(), prefix) {
			return false
		}
	}
	return true
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
