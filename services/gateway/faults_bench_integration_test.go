//go:build integration

package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// enoughAnswers are what a p99 is taken of, at each side.
const enoughAnswers = 1500

// faultRow is a row of the table of faults: a gateway of its own, what happens to
// it, and when that is over. What takes time by itself (a Sentinel that finds a new
// master) is part of the fault.
type faultRow struct {
	name  string
	setup func(t testing.TB, d *deployment, id string) (*faulty, fault)
}

// simple are faults of one Redis behind a proxy.
func simple(name string) faultRow {
	return faultRow{name, func(t testing.TB, d *deployment, id string) (*faulty, fault) {
		return newFaulty(t, d, id), faults[name]
	}}
}

var faultRows = []faultRow{
	simple("blackhole"), simple("RST"), simple("100 ms"), simple("READONLY"), simple("OOM"), simple("script flush"),
	simple("flushall"), simple("paused"), simple("killed"),
	{"failover", failingOver}, {"slot migration", slotMoving}, {"gateway stopped", gatewayStopping},
}

// How much longer the 99th of a hundred requests takes while Redis is away, the
// instant it goes included, and how long it takes to be back. The aims are 10 ms
// and 2 s. Each answer that is none of the policies' is an error.
//
//	make bench PKG=./services/gateway ARGS='-run ^$ -bench Faults -benchtime 3x'
func BenchmarkFaults(b *testing.B) {
	d := withPolicies(b)
	for _, row := range faultRows {
		b.Run(row.name, func(b *testing.B) {
			var quiet, away, back time.Duration
			for range b.N {
				f, fault := row.setup(b, d, "bench-"+url.PathEscape(row.name))
				r := f.measure(b, fault)
				quiet, away, back = quiet+p99(r.quiet), away+p99(r.during), back+r.back
				f.checkAnswers(b)
			}
			b.ReportMetric(0, "ns/op")
			for unit, d := range map[string]time.Duration{"p99-quiet-ms": quiet, "p99-added-ms": away - quiet, "back-ms": back} {
				b.ReportMetric(d.Seconds()*1e3/float64(b.N), unit)
			}
		})
	}
}

// measure is run with enough answers at each side.
func (f *faulty) measure(t testing.TB, fault fault) course {
	t.Helper()
	stop := f.load(t)
	defer stop()
	enough := func(from time.Time) func() bool { return func() bool { return len(f.since(from)) >= enoughAnswers } }
	servertest.Eventually(t, patience, "a warm start", func() bool { return whole(f.since(time.Time{}), 20) })
	warm := time.Now()
	servertest.Eventually(t, patience, "answers of quiet", enough(warm))
	r := course{quiet: f.since(warm)}
	began := time.Now()
	fault.begin(t, f)
	ended := time.Now()
	servertest.Eventually(t, patience, "answers during the fault", enough(began))
	r.during = f.overlapping(began)
	if fault.looks != neverAway { // else it ended by itself
		ended = time.Now()
	}
	fault.end(t, f)
	over := time.Now()
	servertest.Eventually(t, patience, "answers after the fault", func() bool { return whole(f.since(over), 5) })
	for _, p := range policiesUnderTest {
		r.back = max(r.back, back(f.since(ended), p).Sub(ended))
	}
	return r
}

// back is when a policy's answers came with the store again: the first of five.
func back(all []sample, policy string) (at time.Time) {
	slices.SortFunc(all, func(a, b sample) int { return a.asked.Compare(b.asked) })
	for right := 0; len(all) > 0 && right < 5; all = all[1:] {
		switch s := all[0]; {
		case s.policy != policy:
		case s.status != http.StatusOK || s.degraded:
			right = 0
		default:
			if right++; right == 1 {
				at = s.asked.Add(s.took)
			}
		}
	}
	return at
}

// overlapping are the answers that came after a time. What the gateway itself
// was stopped for is nobody's wait.
func (f *faulty) overlapping(from time.Time) []sample {
	all := slices.DeleteFunc(f.since(time.Time{}), func(s sample) bool { return s.asked.Add(s.took).Before(from) })
	for i := range all {
		s := &all[i]
		late, early := s.asked, s.asked.Add(s.took)
		if late.Before(f.stopped) {
			late = f.stopped
		}
		if early.After(f.resumed) {
			early = f.resumed
		}
		s.took -= max(0, early.Sub(late))
	}
	return all
}

// failingOver has a master killed under its Sentinel, which is over when the
// replica has taken its place.
func failingOver(t testing.TB, d *deployment, id string) (*faulty, fault) {
	f, replica, sentinel := underSentinel(t, d, id)
	servertest.Eventually(t, patience, "Sentinel to know the replica", func() bool { return replicas(t, sentinel) == 1 })
	admin := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	return f, fault{
		begin: func(testing.TB, *faulty) { f.server.Kill() },
		end: func(t testing.TB, _ *faulty) {
			servertest.Eventually(t, patience, "another master", func() bool {
				info, err := admin.InfoMap(t.Context(), "replication").Result()
				return err == nil && info["Replication"]["role"] == "master"
			})
		},
		looks: fullyAway, forgets: true,
	}
}

// slotMoving has the tenant's slot move to another master.
func slotMoving(t testing.TB, d *deployment, id string) (*faulty, fault) {
	c := servertest.StartRedisCluster(t)
	d.onCluster(c)
	defer func() { d.redis = nil }()
	f := &faulty{gate: d.runReady(id, "", "", func(c *Config) { c.Store = DefaultConfig().Store; c.Store.KeyPrefix = "" })}
	slot, err := c.Clients[0].ClusterKeySlot(t.Context(), "{t:acme}").Result()
	must(t, err)
	from := int(slot) * 3 / 16384
	return f, fault{
		begin: func(t testing.TB, _ *faulty) { c.Move(t, int(slot), from, (from+1)%3) },
		end:   func(testing.TB, *faulty) {},
	}
}

// gatewayStopping has the gateway stopped for longer than its connections to
// Redis wait, and go on.
func gatewayStopping(t testing.TB, d *deployment, _ string) (*faulty, fault) {
	f := &faulty{server: servertest.StartRedis(t)}
	process, base, _ := startChild(t, child{d.stream.Brokers, d.stream.TopicPrefix, f.server.Addr(), t.TempDir(), DefaultConfig().Store.Budget})
	f.gate = &running{base: base}
	return f, fault{
		begin: func(t testing.TB, f *faulty) {
			f.stopped = time.Now()
			must(t, process.Signal(syscall.SIGSTOP))
			<-time.After(700 * time.Millisecond)
			must(t, process.Signal(syscall.SIGCONT))
			f.resumed = time.Now()
		},
		end: func(testing.TB, *faulty) {},
	}
}
