//go:build integration

package cache_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// wire is the way to a Redis that a test can cut and lead elsewhere.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	target   string // "" is cut
	conns    map[net.Conn]struct{}
}

func newWire(t testing.TB, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { w.carry(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); w.lead(""); wg.Wait() })
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

// lead cuts what is connected; new connections go to target, nowhere if it is empty.
func (w *wire) lead(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
	for c := range w.conns {
		_ = c.Close()
	}
}

func (w *wire) carry(conn net.Conn) {
	defer conn.Close()
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	if target == "" {
		return
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.conns[conn], w.conns[far] = struct{}{}, struct{}{}
	ok := w.target == target
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, conn)
		delete(w.conns, far)
	}()
	if !ok {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(far, conn); _ = far.Close() }()
	_, _ = io.Copy(conn, far)
	_ = conn.Close()
	<-done
}

// ledger is a source and what is known about its changes: the version whose invalidation was over at each time.
type ledger struct {
	version atomic.Int64
	mu      sync.Mutex
	over    []change
}

type change struct {
	version int64
	at      time.Time
}

func (l *ledger) load(context.Context, string) (cache.Loaded[string], error) {
	return cache.Loaded[string]{Value: strconv.FormatInt(l.version.Load(), 10)}, nil
}

// write changes the source and invalidates by c, again and again until that is said.
func (l *ledger) write(t testing.TB, c *cache.Cache[string], hard bool) {
	version := l.version.Add(1)
	invalidate := c.Invalidate
	if hard {
		invalidate = c.Clear
	}
	eventually(t, "an invalidation", func() bool { return invalidate(context.Background(), "k") == nil })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = append(l.over, change{version, time.Now()})
}

// due is the least version that a read which began then may return.
func (l *ledger) due(began time.Time) (least int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.over {
		if !c.at.After(began) {
			least = max(least, c.version)
		}
	}
	return least
}

// watch reads until stop and fails the test for each read that is staler than bound; it returns the number of reads.
func (l *ledger) watch(t testing.TB, name string, c *cache.Cache[string], bound time.Duration, stop <-chan struct{}) (reads int) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return reads
		case <-pace.C:
		}
		began := time.Now()
		r, err := c.Fetch(context.Background(), "k")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return reads
		}
		reads++
		got, _ := strconv.ParseInt(r.Value, 10, 64)
		if least := l.due(began.Add(-bound)); got < least {
			t.Errorf("%s: version %d from %s, %d was invalidated %s before", name, got, r.Source, least, bound)
			return reads
		}
	}
}

// through is a Cache on a wire.
func through(t testing.TB, w *wire, prefix string, l *ledger) *cache.Cache[string] {
	t.Helper()
	o := &redis.UniversalOptions{Addrs: []string{w.addr()}}
	cache.ConfigureRedis(o, time.Second)
	rdb := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	q := quick(rdb)
	q.Prefix, q.Load, q.TTL, q.L1TTL, q.RedisDownLimit, q.RedisTimeout = prefix, l.load, time.Hour, awayLimit, awayLimit, time.Second
	return listening(t, running(t, q), q)
}

// awayLimit is the bound on stale reads; slack what a busy machine may add to the time of a read.
const awayLimit, slack = time.Second, time.Second

// Cut for 10 s during 100 invalidations: the process that hears nothing serves nothing staler than its bound, and when
// it hears again it is up to date at once.
func TestCutDuringInvalidations(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	near, far := newWire(t, addr), newWire(t, addr)
	var l ledger
	a, b := through(t, near, prefix, &l), through(t, far, prefix, &l)
	stop, total := make(chan struct{}), make(chan int, 2)
	go func() { total <- l.watch(t, "connected", a, 0, stop) }()
	go func() { total <- l.watch(t, "cut", b, awayLimit+slack, stop) }()
	eventually(t, "both to read", func() bool { return get(t, b, "k").Source == cache.HitL1 })
	far.lead("")
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for i := range 100 {
		<-every.C
		l.write(t, a, i%2 == 0)
	}
	eventually(t, "the cut one to notice", func() bool { return !cache.Listening(b) })
	far.lead(addr)
	eventually(t, "it to hear again", func() bool { return cache.Listening(b) })
	if got := get(t, b, "k").Value; got != "100" {
		t.Errorf("after it hears again it serves version %s", got)
	}
	close(stop)
	for range 2 {
		if n := await(t, total, "a watcher"); n < 100 {
			t.Errorf("a watcher read only %d times", n)
		}
	}
}

// A connection lost and found: L1 is void if an invalidation was missed, and kept if none was.
func TestReconnectComparesEpochs(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	far := newWire(t, addr)
	var l ledger
	node := func(rdb redis.UniversalClient) *cache.Cache[string] {
		q := quick(rdb)
		q.Prefix, q.Load, q.TTL, q.L1TTL, q.RedisDownLimit = prefix, l.load, time.Hour, time.Hour, time.Hour
		return listening(t, running(t, q), q)
	}
	a, b := node(client(t, addr)), node(client(t, far.addr()))
	l.write(t, a, false) // heard by both: a count that differs from none
	eventually(t, "it to be heard", func() bool { return cache.Heard(b, "k") })
	get(t, b, "k")
	far.lead("")
	eventually(t, "the cut", func() bool { return !cache.Listening(b) })
	far.lead(addr)
	eventually(t, "it to hear again", func() bool { return cache.Listening(b) })
	wants(t, get(t, b, "k"), "1", cache.HitL1)
	far.lead("")
	eventually(t, "the cut", func() bool { return !cache.Listening(b) })
	wants(t, get(t, b, "k"), "1", cache.HitL1)
	l.write(t, a, false)
	far.lead(addr)
	eventually(t, "it to hear again", func() bool { return cache.Listening(b) })
	if got := get(t, b, "k"); got.Value != "2" {
		t.Errorf("version %s from %s after it hears again", got.Value, got.Source)
	}
}

// Redis loses everything under load, again and again.
func TestFlushedDuringInvalidations(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	w := newWire(t, server.Addr())
	var l ledger
	a, b := through(t, w, "f:", &l), through(t, w, "f:", &l)
	stop, total := make(chan struct{}), make(chan int, 2)
	go func() { total <- l.watch(t, "a", a, 0, stop) }()
	go func() { total <- l.watch(t, "b", b, awayLimit+slack, stop) }()
	rdb := client(t, server.Addr())
	for i := range 100 {
		l.write(t, a, i%2 == 0)
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Dead and empty: started anew at the same place.
	server.Kill()
	eventually(t, "reads without redis", func() bool { _, err := b.Get(t.Context(), "k"); return err == nil })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		l.write(t, a, i%2 == 0)
	}
	close(stop)
	for range 2 {
		await(t, total, "a watcher")
	}
	eventually(t, "the newest", func() bool { return get(t, b, "k").Value == "110" })
}

// The new master has not heard of the last invalidations: those who issued them repeat them.
func TestFailoverForgetsInvalidations(t *testing.T) {
	t.Parallel()
	master := servertest.StartRedis(t)
	replica := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--replicaof", "127.0.0.1", strconv.Itoa(master.Port())}})
	w := newWire(t, master.Addr())
	var l ledger
	a, b := through(t, w, "r:", &l), through(t, w, "r:", &l)
	for range 5 {
		l.write(t, a, false)
		get(t, a, "k")
	}
	get(t, b, "k")
	promoted := client(t, replica.Addr())
	eventually(t, "the replica to follow", func() bool { return promoted.Exists(t.Context(), "r:test:{k}:v").Val() == 1 })
	old := promoted.Get(t.Context(), "r:test:{k}:v").Val()
	if err := promoted.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	l.write(t, a, true) // the replica does not learn of it
	if now := promoted.Get(t.Context(), "r:test:{k}:v").Val(); now != old || !strings.HasPrefix(now, "v") {
		t.Fatal("the replica still follows")
	}
	stop, total := make(chan struct{}), make(chan int, 2)
	go func() { total <- l.watch(t, "a", a, 0, stop) }()
	go func() { total <- l.watch(t, "b", b, awayLimit+slack, stop) }()
	w.lead(replica.Addr())
	master.Kill()
	eventually(t, "the invalidation to be repeated", func() bool { return strings.HasPrefix(promoted.Get(t.Context(), "r:test:{k}:b").Val(), "h") })
	// One who heard nothing of it cannot get the old value either.
	c := through(t, w, "r:", &l)
	if got := get(t, c, "k").Value; got != fmt.Sprint(l.version.Load()) {
		t.Errorf("a new process got version %s", got)
	}
	close(stop)
	for range 2 {
		await(t, total, "a watcher")
	}
}
