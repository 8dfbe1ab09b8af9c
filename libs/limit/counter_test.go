package limit_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Emission is exact: micros·limit + rem is n·window, whatever divides badly.
func TestEmissionIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.Int64Range(1, limit.MaxGCRALimit).Draw(t, "limit")
		window := time.Duration(rapid.Int64Range(1, 8760*3600).Draw(t, "seconds")) * time.Second
		n := rapid.Int64Range(0, limit.MaxInteger).Draw(t, "n")
		micros, rem, ok := limit.Emission(per, window, n)
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(window.Microseconds()))
		tooLong := new(big.Int).Quo(want, big.NewInt(per)).Cmp(big.NewInt(limit.MaxRefill.Microseconds())) > 0
		if ok == tooLong {
			t.Fatalf("Emission(%d, %s, %d) ok is %t", per, window, n, ok)
		}
		if !ok {
			return
		}
		got := new(big.Int).Mul(big.NewInt(micros), big.NewInt(per))
		if got.Add(got, big.NewInt(rem)); got.Cmp(want) != 0 || rem < 0 || rem >= per {
			t.Fatalf("Emission(%d, %s, %d) = %d + %d/%d", per, window, n, micros, rem, per)
		}
	})
}

func TestEmissionRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit  int64
		window time.Duration
		n      int64
	}{{0, time.Second, 1}, {-1, time.Second, 1}, {1, time.Second, -1}, {1, -time.Second, 1}} {
		if _, _, ok := limit.Emission(tc.limit, tc.window, tc.n); ok {
			t.Errorf("%+v was taken", tc)
		}
	}
}

// The sums of the script stay below 2^53 until 2100: a full counter's arrival
// time, and once more its burst as the largest cost.
func TestBoundsKeepSumsExact(t *testing.T) {
	t.Parallel()
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	if sum := end + 2*limit.MaxRefill.Microseconds() + 1; sum >= limit.MaxInteger {
		t.Fatalf("%d is above 2^53", sum)
	}
}

// Names in events are a contract with whoever reads usage.v1.
func TestAlgorithmNames(t *testing.T) {
	t.Parallel()
	for a, want := range map[limit.Algorithm]string{
		limit.GCRA: usage.AlgoGCRA, limit.FixedWindow: usage.AlgoFixedWindow,
		limit.RenewingQuota: usage.AlgoRenewingQuota, limit.SlidingWindow: usage.AlgoSlidingWindow,
		limit.TokenBucket: usage.AlgoTokenBucket, limit.PrepaidQuota: usage.AlgoPrepaidQuota,
		limit.OverdraftQuota: usage.AlgoOverdraftQuota, 0: "UNKNOWN", 99: "UNKNOWN",
	} {
		if a.String() != want || a.Quota() != strings.HasSuffix(want, "_QUOTA") {
			t.Errorf("%d: %s, quota %t", a, a, a.Quota())
		}
	}
}
