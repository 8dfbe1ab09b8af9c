//go:build soak && integration

package redisstore

import (
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

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
					if err := client.FlushAll(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
				})
			}
			t.Logf("%d steps in %s", steps, time.Since(began).Round(time.Second))
		})
	}
}

func TestSoakMillionKeysTwoWindowsLaterNoneLeft(t *testing.T) { noneLeft(t, 1_000_000) }

func TestSoakNoDriftInAMillionSteps(t *testing.T) { noDrift(t, 1_000_000) }
