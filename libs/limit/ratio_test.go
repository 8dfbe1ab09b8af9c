package limit

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// number draws numbers of any size, small ones and bounds more often.
func number(from int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(from, 100), rapid.Int64Range(from, 60_000_000), rapid.Int64Range(from, MaxInteger), rapid.Int64Range(from, 1<<62))
}

// What a ratio makes of whole sums, products and comparisons is what big.Rat
// makes of them, whether it fits or not.
func TestRatioIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		is, want := ratio{}, new(big.Rat)
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			a, b, c := number(-MaxInteger).Draw(t, "a"), number(-MaxInteger).Draw(t, "b"), number(1).Draw(t, "c")
			operand := big.NewRat(a, c)
			operand.Mul(operand, new(big.Rat).SetInt64(b))
			other := quotient(a, b, c)
			demand(t, other, operand)
			if got := is.cmp(other); got != want.Cmp(operand) {
				t.Fatalf("%v against %v: %d", want, operand, got)
			}
			demand(t, lesser(is, other), lesserRat(want, operand))
			switch rapid.SampledFrom([]string{"plus", "minus", "times"}).Draw(t, "operation") {
			case "plus":
				is, want = is.plus(other), new(big.Rat).Add(want, operand)
			case "minus":
				is, want = is.minus(other), new(big.Rat).Sub(want, operand)
			case "times":
				is, want = is.times(a, c), new(big.Rat).Mul(want, big.NewRat(a, c))
			}
			demand(t, is, want)
		}
	})
}

func lesserRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func demand(t *rapid.T, got ratio, want *big.Rat) {
	t.Helper()
	if got.rat().Cmp(want) != 0 || got.sign() != want.Sign() {
		t.Fatalf("got %+v, want %v", got, want)
	}
	if got.wide == nil && got.num >= max(got.den, 1) {
		t.Fatalf("%+v is no proper fraction", got)
	}
	down, rem := new(big.Int).DivMod(want.Num(), want.Denom(), new(big.Int))
	if !down.IsInt64() || down.BitLen() > 62 {
		return
	}
	up := down.Int64()
	if rem.Sign() > 0 {
		up++
	}
	if got.floor() != down.Int64() || got.ceil() != up {
		t.Fatalf("%v: floor %d, ceil %d", want, got.floor(), got.ceil())
	}
}

// The numbers of counters are small enough never to need big.Rat, which is what
// makes the Model fast enough for histories of millions of steps.
func TestRatioOfACounterIsNarrow(t *testing.T) {
	t.Parallel()
	const now = 2_500_000_000_000_000
	tat := integer(now).plus(quotient(60_000_000, 1<<20, 1_000_003)).plus(quotient(60_000_000, -7, 1_000_003))
	tokens := integer(1<<20).plus(quotient(1_000_003, -20_000_000, 60_000_000)).times(60_000_000, 1_000_003)
	if tat.wide != nil || tokens.wide != nil {
		t.Fatalf("%+v, %+v", tat, tokens)
	}
}
