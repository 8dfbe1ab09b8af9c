package redisstore

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// A server that goes on refusing is asked now and then, and takes charges again
// by itself.
func TestLastingRefusalIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	s := newStore(t, newClient(t, srv.Addr()), Options{Budget: 500 * time.Millisecond})
	decide := func() error {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)})
		return err
	}
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
	var calls atomic.Int64
	var refusing atomic.Bool
	refusing.Store(true)
	srv.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "EVALSHA" && cmd != "EVAL" {
			return false
		}
		calls.Add(1)
		if refusing.Load() {
			c.WriteError("READONLY You can't write against a read only replica.")
		}
		return refusing.Load()
	})
	// Within the budget it is sent again, as to a server that comes round.
	if err := decide(); !errors.Is(err, limit.ErrUnavailable) || calls.Load() < 2 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
	servertest.Eventually(t, 60*time.Second, "decisions to be told without a call", func() bool {
		_ = decide() // the trial that is due; the next is due trialEvery later, which is less than a pause between polls
		before := calls.Load()
		err := decide()
		var reply redis.Error
		return errors.Is(err, limit.ErrUnavailable) && errors.As(err, &reply) && calls.Load() == before
	})
	servertest.Eventually(t, 60*time.Second, "the server to be asked all the same", func() bool {
		before := calls.Load()
		return errors.Is(decide(), limit.ErrUnavailable) && calls.Load() == before+1
	})
	refusing.Store(false)
	servertest.Eventually(t, 60*time.Second, "a decision", func() bool { return decide() == nil })
	if !s.Available() {
		t.Fatal("the breaker is open")
	}
}

func TestRefusalLastsFromItsFirstAnswer(t *testing.T) {
	t.Parallel()
	now, budget := time.Unix(1000, 0), 5*time.Millisecond
	readonly := replyError("READONLY You can't write against a read only replica.")
	var r refusal
	for _, c := range []struct {
		err   error
		after time.Duration
		want  bool
	}{
		{readonly, 0, false}, {readonly, budget, false}, {readonly, budget + 1, true},
		{errors.New("broken pipe"), time.Second, false}, {replyError("TRYAGAIN"), time.Second, false}, {readonly, time.Second, true},
		{nil, time.Second, false}, {readonly, 2 * time.Second, false}, {readonly, 2*time.Second + budget + 1, true},
	} {
		if got := r.lasts(c.err, now.Add(c.after), budget); got != c.want {
			t.Errorf("%v after %s: %v", c.err, c.after, got)
		}
	}
}

// replyError is an answer of Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestOfALastingRefusalOneInAWhileIsATrial(t *testing.T) {
	t.Parallel()
	now, budget := time.Unix(1000, 0), 5*time.Millisecond
	loading := replyError("LOADING Redis is loading the dataset in memory")
	var r refusal
	r.lasts(loading, now, budget)
	for _, c := range []struct {
		after time.Duration
		trial bool
	}{
		{0, true}, {budget, true}, {budget + 1, true}, {budget + 2, false}, {budget + trialEvery, false},
		{budget + trialEvery + 1, true}, {budget + trialEvery + 2, false}, {time.Hour, true},
	} {
		if err := r.instead(now.Add(c.after), budget); (err == nil) != c.trial || err != nil && err != error(loading) {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
	r.lasts(nil, now, budget)
	if err := r.instead(now.Add(2*time.Hour), budget); err != nil {
		t.Errorf("after it took a charge: %v", err)
	}
}
