//go:build integration

package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// watched is a Redis, or a Cluster, that keepers watch.
type watched struct {
	t *testing.T
	*Restorer
}

// whole is how a watch finds its processes: the number that are whole.
func (w *watched) whole(by *Watch) (n int) {
	w.t.Helper()
	servertest.Eventually(w.t, 20*time.Second, "a look", func() bool {
		all, err := by.Look(w.t.Context(), false)
		n = 0
		for _, p := range all {
			if p.Whole {
				n++
			}
		}
		return err == nil
	})
	return n
}

// restore restores what a watch finds not to be whole, and returns the markers
// it was begun with.
func (w *watched) restore(by *Watch) (markers []string) {
	w.t.Helper()
	all, err := by.Look(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range all {
		if p.Whole {
			continue
		}
		if p, err = by.Begin(w.t.Context(), p); err == nil {
			err = w.Seal(w.t.Context(), p)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		markers = append(markers, p.Marker)
	}
	return markers
}

// A master that was a replica for a while has its run id and its marker, and is
// seen not to be whole: by a keeper that was there, and by one that comes later.
func TestCopyThatIsMasterAgainIsNotWhole(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	client := newClient(t, server.Addr())
	w := &watched{t, NewRestorer(client, "p:")}
	there, other := w.Watch(), w.Watch()
	before := w.restore(there)
	if w.whole(there) != 1 || w.whole(other) != 1 {
		t.Fatal("not whole at first")
	}
	for round := range 2 {
		servertest.Detour(t, server, func() {
			if err := client.Set(t.Context(), "p:used", round, 0).Err(); err != nil {
				t.Fatal(err)
			}
		})
		marker, err := client.Get(t.Context(), "p:"+markerKey).Result()
		if err != nil || marker != before[0] || marker[:40] != runID(t, client) {
			t.Fatalf("marker %q, %v: want that of this process, %q", marker, err, before[0])
		}
		if w.whole(there) != 0 || w.whole(other) != 0 || w.whole(w.Watch()) != 0 {
			t.Fatal("a copy is whole")
		}
		after := w.restore(there)
		if after[0] == before[0] {
			t.Fatal("restored by the same marker: gateways would not hand in anew")
		}
		if w.whole(there) != 1 || w.whole(other) != 1 || w.whole(w.Watch()) != 1 {
			t.Fatal("not whole after its restore")
		}
		before = after
	}
}

// Its first replica, and its last one's leaving, give a master another
// replication id and take nothing from it.
func TestReplicasThatComeAndGoTakeNothing(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--repl-backlog-ttl", "1", "--repl-diskless-sync-delay", "0"}})
	client := newClient(t, server.Addr())
	w := &watched{t, NewRestorer(client, "p:")}
	by := w.Watch()
	w.restore(by)
	replica := func() *devserver.Redis {
		t.Helper()
		r := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(server.Port())}})
		servertest.Follows(t, newClient(t, r.Addr()))
		return r
	}
	ids := map[string]bool{}
	other := func(what string) { // waits for another replication id
		t.Helper()
		known := len(ids)
		servertest.Eventually(t, 20*time.Second, what, func() bool {
			if w.whole(by) != 1 {
				t.Fatal("not whole")
			}
			ids[by.lineages[""].id] = true
			return len(ids) > known
		})
		if w.whole(w.Watch()) != 1 {
			t.Fatal("not whole for a keeper that comes now: the new id is not noted")
		}
	}
	other("the first look")
	for range 2 {
		r := replica()
		other("a backlog")
		r.Kill()
		other("the backlog to be given up")
	}
	// Where nobody has looked for long, it might have been promoted meanwhile.
	id := by.lineages[""]
	id.at = id.at.Add(-backlogLives)
	by.lineages[""] = id
	replica()
	if w.whole(by) != 0 {
		t.Error("whole, with an id that nobody saw it take")
	}
}

// Markers of keepers that noted no lineage are taken as they are; from then on
// they have one.
func TestMarkerWithoutLineageGetsOne(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	client := newClient(t, server.Addr())
	w := &watched{t, NewRestorer(client, "p:")}
	w.restore(w.Watch())
	for _, spoil := range []func() error{
		func() error { return client.Del(t.Context(), "p:"+lineageKey).Err() },
		func() error { return client.Set(t.Context(), "p:"+lineageKey, "nonsense", 0).Err() },
		func() error {
			client.Del(t.Context(), "p:"+lineageKey)
			return client.LPush(t.Context(), "p:"+lineageKey, "a list").Err()
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if w.whole(w.Watch()) != 1 {
			t.Fatal("not whole")
		}
	}
	servertest.Detour(t, server, func() {})
	if w.whole(w.Watch()) != 0 {
		t.Error("a copy is whole")
	}
}

// A master of a Cluster that another took over from, and that took over again.
func TestMasterOfAClusterThatWasACopy(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	client := clusterClient(t, c)
	w := &watched{t, NewRestorer(client, "p:")}
	by := w.Watch()
	w.restore(by)
	replica := c.AddReplica(t, 0)
	servertest.Eventually(t, 20*time.Second, "the cluster to be at rest", func() bool {
		all, err := by.Look(t.Context(), true)
		return err == nil && by.AtRest() && len(all) == 3
	})
	if w.whole(by) != 3 {
		t.Fatal("a new replica took something")
	}
	c.TakeOver(t, replica, 0)
	c.TakeOver(t, 0, replica)
	for _, now := range []*Watch{by, w.Watch()} {
		servertest.Eventually(t, 20*time.Second, "the client to find it again", func() bool {
			all, err := now.Look(t.Context(), true)
			for _, p := range all {
				if p.addr == c.Nodes[0].Addr() {
					return err == nil && p.copied && !p.Whole && !p.Moved
				}
			}
			return false
		})
		if w.whole(now) != 2 {
			t.Error("those that lost nothing are not whole")
		}
	}
	w.restore(by)
	if w.whole(by) != 3 || w.whole(w.Watch()) != 3 {
		t.Error("not whole after the restore")
	}
}
