//go:build integration

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// What a call costs Redis, by its own account (INFO commandstats, and the CPU
// time of its main thread, which a busy machine disturbs less):
//
//	make bench PKG=./libs/limit/redisstore ARGS='-run ^$ -bench Script'
func BenchmarkScript(b *testing.B) {
	mixed := func(tenant string) []limit.Counter {
		return []limit.Counter{of(gcra(1<<30, 1<<30), tenant), of(fixed(1<<50), tenant), of(quota(1<<50), tenant)}
	}
	for _, counters := range []struct {
		name string
		of   func(tenant string) []limit.Counter
	}{
		{"gcra", func(t string) []limit.Counter { return mixed(t)[:1] }},
		{"fixed", func(t string) []limit.Counter { return mixed(t)[1:2] }},
		{"quota", func(t string) []limit.Counter { return mixed(t)[2:] }},
		{"three", mixed},
	} {
		for _, decisions := range []int{1, 16} {
			for _, tenants := range []string{"many", "one"} {
				if decisions == 1 && tenants == "one" {
					continue
				}
				b.Run(fmt.Sprintf("%s/batch=%d/tenants=%s", counters.name, decisions, tenants), func(b *testing.B) {
					benchmarkScript(b, decisions, func(i int) []limit.Counter {
						if tenants == "one" {
							i = 0
						}
						return counters.of(strconv.Itoa(i))
					})
				})
			}
		}
	}
}

// of moves a counter to a tenant.
func of(c limit.Counter, tenant string) limit.Counter {
	c.Key = strings.Replace(c.Key, "{t:a}", "{t:tenant-"+tenant+"}", 1)
	return c
}

// benchmarkScript sends batches of so many decisions, of a thousand in turn.
func benchmarkScript(b *testing.B, decisions int, counters func(int) []limit.Counter) {
	client := newClient(b, servertest.StartRedis(b).Addr())
	s := newStore(b, client, Options{})
	s.sync(b.Context(), map[string]string{}) // so that it names an epoch
	const rounds = 64
	batches := make([]*batch, rounds)
	for i := range batches {
		batches[i] = new(batch)
		for j := range decisions {
			a := new(asking)
			a.layOut(s, counters(i*decisions+j), s.now())
			batches[i].add(a.parts[0])
		}
		batches[i].lay(s)
		batches[i].epoch = s.servers.epochFor(0, runID(b, s))
	}
	send := func(i int) {
		if err := client.Process(context.Background(), batches[i%rounds].command(s)); err != nil {
			b.Fatal(err)
		}
	}
	batches[0].text = true
	send(0)
	batches[0].text = false
	for i := range rounds {
		send(i)
	}
	before := scriptCost(b, client)
	b.ResetTimer()
	for i := range b.N {
		send(i)
	}
	b.StopTimer()
	after := scriptCost(b, client)
	n := float64(b.N * decisions)
	b.ReportMetric(float64(after.micros-before.micros)/n, "redis-µs/decision")
	b.ReportMetric((after.cpu-before.cpu)*1e6/n, "cpu-µs/decision")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkDecide(b *testing.B) {
	three := []limit.Counter{gcra(1<<30, 1<<30), fixed(1 << 50), quota(1 << 50)}
	addr, prefix := servertest.Redis(b)
	s := newStore(b, newClient(b, addr), Options{KeyPrefix: prefix})
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("three/clients=%d", clients), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(max(1, clients/2))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Decide(context.Background(), three); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

type cost struct {
	calls, micros int64
	cpu           float64 // s
}

// scriptCost reads what EVALSHA took so far.
func scriptCost(b *testing.B, client redis.UniversalClient) (c cost) {
	b.Helper()
	info, err := client.InfoMap(context.Background(), "commandstats", "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for field := range strings.SplitSeq(info["Commandstats"]["cmdstat_evalsha"], ",") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "calls":
			c.calls = int64(parse(b, value))
		case "usec":
			c.micros = int64(parse(b, value))
		}
	}
	c.cpu = parse(b, info["CPU"]["used_cpu_user_main_thread"]) + parse(b, info["CPU"]["used_cpu_sys_main_thread"])
	return c
}

func parse(b *testing.B, s string) float64 {
	b.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
