//go:build integration

package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// attending is a store that attends when the test says so.
type attending struct {
	*Store
	t testing.TB
	a *attendance
}

func newAttending(t testing.TB, client redis.UniversalClient) *attending {
	t.Helper()
	s := &attending{Store: newStore(t, client, Options{}), t: t, a: newAttendance()}
	t.Cleanup(s.a.end)
	s.attend()
	return s
}

func (s *attending) attend() {
	s.t.Helper()
	s.Store.attend(s.t.Context(), s.a)
}

// informed has n units of a quota charged and returns how often that took an INFO of the process.
func (s *attending) informed(process redis.UniversalClient, n int) (asked int64) {
	s.t.Helper()
	before := infos(s.t, process)
	for range n {
		if _, err := s.Decide(s.t.Context(), []limit.Counter{quota(1 << 40)}); err != nil {
			s.t.Fatal(err)
		}
	}
	return infos(s.t, process) - before - 1 // the first look itself
}

// infos is how often a process was asked for INFO.
func infos(t testing.TB, process redis.UniversalClient) int64 {
	t.Helper()
	stats, err := process.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats["Commandstats"]["cmdstat_info"], "calls="), ",")
	if calls == "" {
		return 0
	}
	n, err := strconv.ParseInt(calls, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// witnesses is how many connections are subscribed to a run id.
func witnesses(t testing.TB, process redis.UniversalClient, runID string) int64 {
	t.Helper()
	n, err := process.PubSubNumSub(t.Context(), witnessChannel+runID).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n[witnessChannel+runID]
}

func runID(t testing.TB, process redis.UniversalClient) string {
	t.Helper()
	info, err := process.InfoMap(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info["Server"]["run_id"]
}

// A witness spares the INFO of each call, of whichever gateway it is; where the
// last one is gone, calls are charged as before, by INFO.
func TestWitnessSparesInfo(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	admin := newClient(t, server.Addr())
	a := newAttending(t, newClient(t, server.Addr()))
	if n := a.informed(admin, 20); n != 0 {
		t.Errorf("%d INFO with a witness", n)
	}
	b := newAttending(t, newClient(t, server.Addr()))
	id := runID(t, admin)
	for range 3 { // a look does not make another one
		a.attend()
	}
	if n := witnesses(t, admin, id); n != 2 {
		t.Fatalf("%d witnesses of two gateways", n)
	}
	a.a.end()
	servertest.Eventually(t, 5*time.Second, "it to be gone", func() bool { return witnesses(t, admin, id) == 1 })
	if n := a.informed(admin, 20); n != 0 {
		t.Errorf("%d INFO with another gateway's witness", n)
	}
	// The last one's connection is cut: the next look makes another.
	if err := admin.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 5*time.Second, "it to be gone", func() bool { return witnesses(t, admin, id) == 0 })
	if n := b.informed(admin, 20); n != 20 {
		t.Errorf("%d INFO for 20 charges without a witness", n)
	}
	b.attend() // finds that it is gone
	if n := b.informed(admin, 20); n != 0 {
		t.Errorf("%d INFO with a new witness", n)
	}
}

// The marker of a process that is gone is in the file of the next one. Nothing
// is charged there: no witness follows it to another process.
func TestWitnessDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedisWith(t, devserver.RedisOptions{AppendOnly: true, Args: []string{"--appendfsync", "always"}})
	admin := newClient(t, server.Addr())
	s := newAttending(t, newClient(t, server.Addr()))
	old := runID(t, admin)
	if n := s.informed(admin, 20); n != 0 {
		t.Fatalf("%d INFO with a witness", n)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if marker, err := admin.Get(t.Context(), markerKey).Result(); err != nil || !strings.HasPrefix(marker, old) {
		t.Fatalf("the marker did not come back: %q, %v", marker, err)
	}
	restoring := func() {
		t.Helper()
		if _, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)}); !errors.Is(err, limit.ErrRestoring) {
			t.Fatalf("error %v, want ErrRestoring", err)
		}
		if n := witnesses(t, admin, old); n != 0 {
			t.Fatalf("%d witnesses of a process that is gone", n)
		}
	}
	restoring()
	for range 3 {
		s.attend()
		restoring()
	}
	if n := witnesses(t, admin, runID(t, admin)); n != 1 {
		t.Errorf("%d witnesses of the new process", n)
	}
	if err := DeclareWhole(t.Context(), admin, ""); err != nil {
		t.Fatal(err)
	}
	s.attend()
	if n := s.informed(admin, 20); n != 0 {
		t.Errorf("%d INFO after the restore", n)
	}
}

// A subscription to another run id says nothing of this process.
func TestOtherSubscriptionsAreNoWitness(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	admin := newClient(t, server.Addr())
	s := newStore(t, newClient(t, server.Addr()), Options{})
	id := runID(t, admin)
	other := strings.Repeat("f", 40)
	sub := admin.Subscribe(t.Context(), witnessChannel+other, witnessChannel, witnessChannel+id[:39])
	defer sub.Close()
	patterns := admin.PSubscribe(t.Context(), witnessChannel+"*")
	defer patterns.Close()
	servertest.Eventually(t, 5*time.Second, "the subscription", func() bool { return witnesses(t, admin, other) == 1 })
	on := &attending{Store: s, t: t}
	if n := on.informed(admin, 20); n != 20 {
		t.Errorf("%d INFO for 20 charges without a witness", n)
	}
	node := admin.(*redis.Client)
	if client, err := subscribe(t.Context(), node, other); !errors.Is(err, errMoved) {
		t.Errorf("%v, %v: subscribed to the run id of another process", client, err)
	}
}

// Where it cannot be known that nothing is between this end and the process, or
// Redis does not let it subscribe or its script look, calls are charged by INFO.
func TestWithoutWitnessChargesGoByInfo(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	admin := newClient(t, server.Addr())
	user := func(name string, rules ...any) redis.UniversalClient {
		t.Helper()
		set := append([]any{"acl", "setuser", name, "on", ">secret", "~*", "+@all"}, rules...)
		if err := admin.Do(t.Context(), set...).Err(); err != nil {
			t.Fatal(err)
		}
		o := &redis.UniversalOptions{Addrs: []string{server.Addr()}, Username: name, Password: "secret"}
		Configure(o, generous)
		client := redis.NewUniversalClient(o)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	for name, client := range map[string]redis.UniversalClient{
		"a proxy":            newClient(t, newProxy(t, server.Addr()).addr),
		"no channels":        user("channels", "resetchannels"),
		"no client info":     user("client", "allchannels", "-client"),
		"no SUBSCRIBE":       user("subscribe", "allchannels", "-subscribe"),
		"the script may not": user("script", "allchannels", "-pubsub"),
	} {
		s := newAttending(t, client)
		if n := s.informed(admin, 20); n != 20 {
			t.Errorf("%s: %d INFO for 20 charges", name, n)
		}
		s.a.end()
	}
}

// Each master of a Cluster has its witness, for the markers of all its slots.
func TestWitnessesOfACluster(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	s := newAttending(t, clusterClient(t, c))
	before := make([]int64, len(c.Clients))
	for i, node := range c.Clients {
		if n := witnesses(t, node, runID(t, node)); n != 1 {
			t.Errorf("node %d has %d witnesses", i, n)
		}
		before[i] = infos(t, node)
	}
	for i := range 60 {
		counter := quota(1 << 40)
		counter.Key = tagOn(i%3, i) + ":t::m:quota"
		if _, err := s.Decide(t.Context(), []limit.Counter{counter}); err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range c.Clients {
		if n := infos(t, node) - before[i] - 1; n != 0 {
			t.Errorf("node %d was asked %d INFO", i, n)
		}
	}
}

// A connection of a witness that is gone is not made again.
func TestWitnessDialsOnce(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	admin := newClient(t, server.Addr())
	w, err := subscribe(t.Context(), admin.(*redis.Client), runID(t, admin))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Do(t.Context(), "ping").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Do(t.Context(), "ping").Err(); err == nil {
			t.Fatal("it has a connection again")
		}
	}
}
