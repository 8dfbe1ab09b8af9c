//go:build soak && integration

package redisstore

import (
	"os"
	"strconv"
	"testing"

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

// Script and model agree on ten million random steps of each algorithm. The
// histories are drawn from seeds that the log names.
func TestSoakScriptEqualsModel(t *testing.T) {
	for _, algorithm := range everyAlgorithm {
		t.Run(algorithm.String(), func(t *testing.T) {
			server := servertest.StartRedis(t)
			client := newClient(t, server.Addr())
			l := newLives(t, client, "")
			for left := soakSteps(t); left > 0 && !t.Failed(); {
				rapid.Check(t, func(t *rapid.T) { left -= int64(l.live(t, 24, algorithm)) })
				if err := client.FlushAll(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSoakMillionKeysTwoWindowsLaterNoneLeft(t *testing.T) { noneLeft(t, 1_000_000) }

func TestSoakNoDriftInAMillionSteps(t *testing.T) { noDrift(t, 1_000_000) }
