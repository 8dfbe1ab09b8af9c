//go:build soak && integration

package redisstore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// soakSteps is how many steps each algorithm's histories have together;
// SLUICE_SOAK_STEPS sets another number.
func soakSteps(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("SLUICE_SOAK_STEPS")
	if text == "" {
		return 10_000_000
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Script and model agree on ten million random steps of each algorithm, in many
// histories side by side. The histories are drawn from seeds that the log names.
func TestSoakScriptEqualsModel(t *testing.T) {
	for _, algorithm := range everyAlgorithm {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			server := servertest.StartRedis(t)
			client := newClient(t, server.Addr())
			l := newLives(t, client, "")
			began, steps := time.Now(), int64(0)
			for want := soakSteps(t); steps < want && !t.Failed(); {
				rapid.Check(t, func(t *rapid.T) {
					steps += int64(l.live(t, 16, 8, algorithm))
					l.clear(t)
				})
			}
			t.Logf("%d steps in %s", steps, time.Since(began).Round(time.Second))
		})
	}
}

// clear deletes the keys of the histories so far, but not the marker of quotas.
func (l *lives) clear(t *rapid.T) {
	keys, err := l.client.Keys(context.Background(), "r[0-9]*").Result()
	if err == nil && len(keys) > 0 {
		err = l.client.Del(context.Background(), keys...).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSoakMillionKeysTwoWindowsLaterNoneLeft(t *testing.T) { noneLeft(t, 1_000_000) }

// Unit after unit passes at the microsecond it is due and not one earlier. Calls
// travel many at a time, each behind the time it is to see.
func TestSoakNoDriftInAMillionSteps(t *testing.T) {
	const steps, together = 1_000_000, 1000
	for _, c := range slowCounters() {
		t.Run(fmt.Sprintf("%s %d per %s", c.Algorithm, c.Limit, c.Window), func(t *testing.T) {
			t.Parallel()
			client := newClient(t, servertest.StartRedis(t).Addr())
			l := newLives(t, client, "")
			l.decideAt(t, []time.Time{start2050}, c)
			for from := 1; from <= steps; from += together {
				var times []time.Time
				for i := from; i < from+together; i++ {
					on := start2050.Add(due(&c, i))
					times = append(times, on.Add(-time.Microsecond), on)
				}
				for i, d := range l.decideAt(t, times, c) {
					if onTime := i%2 == 1; d.Allowed != onTime {
						t.Fatalf("at %s: %+v", times[i], d)
					}
				}
			}
		})
	}
}

// decideAt decides on a counter at each of some times, in one go.
func (l *lives) decideAt(t *testing.T, times []time.Time, c limit.Counter) []limit.Decision {
	t.Helper()
	type call struct {
		asking
		batch
		cmd charge
	}
	calls, pipe := make([]call, len(times)), l.client.Pipeline()
	counters := []limit.Counter{c}
	for i := range calls {
		made := &calls[i]
		l.now.Store(times[i].UnixMicro())
		pipe.Set(t.Context(), clockKey, times[i].UnixMicro(), 0)
		made.layOut(l.store, counters, times[i])
		made.add(made.asking.parts[0])
		made.lay(l.store)
		made.stamp(l.store, runID(t, l.store))
		made.cmd = made.command(l.store)
		_ = pipe.Process(t.Context(), made.cmd)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	decisions := make([]limit.Decision, len(calls))
	for i := range calls {
		made := &calls[i]
		l.now.Store(times[i].UnixMicro()) // or the store would learn of a slow clock
		made.take(l.store.servers.only, made.cmd)
		made.hand(l.store)
		d, err := made.judge(counters)
		if err != nil {
			t.Fatal(err)
		}
		decisions[i] = d
	}
	return decisions
}
