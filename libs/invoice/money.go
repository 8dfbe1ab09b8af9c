package invoice

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/sluice-platform/sluice/libs/plan"
)

// maxMinor is the most minor units an amount may have: 2^53, as everywhere.
const maxMinor = 1 << 53

// ErrTooMuch means that an amount is above 2^53 minor units.
var ErrTooMuch = errors.New("amount does not fit 2^53 minor units")

// scale is how many billionths a minor unit of a currency has.
func scale(digits int) uint64 {
	n := uint64(1)
	for range plan.NanoDigits - digits {
		n *= 10
	}
	return n
}

// amountOf is quantity units at a price in billionths, in minor units, rounded
// half up. None of the arguments is negative.
func amountOf(quantity, nanos int64, digits int) (int64, error) {
	hi, lo := bits.Mul64(uint64(quantity), uint64(nanos))
	unit := scale(digits)
	if hi >= unit {
		return 0, ErrTooMuch
	}
	q, r := bits.Div64(hi, lo, unit)
	if r >= unit-r {
		q++
	}
	if q > maxMinor {
		return 0, ErrTooMuch
	}
	return int64(q), nil
}

// share is the part of an amount that falls on some of so many days, rounded
// half up.
func share(minor, days, all int64) int64 {
	hi, lo := bits.Mul64(uint64(minor), uint64(days))
	q, r := bits.Div64(hi, lo, uint64(all)) // days <= all: it fits
	if r >= uint64(all)-r {
		q++
	}
	return int64(q)
}

// add sums amounts; both may be negative.
func add(a, b int64) (int64, error) {
	sum := a + b
	if sum > maxMinor || sum < -maxMinor {
		return 0, ErrTooMuch
	}
	return sum, nil
}

// Format writes minor units as a decimal of the currency, such as -0.05.
func Format(minor int64, currency string) (string, error) {
	digits, ok := plan.MinorDigits(currency)
	if !ok {
		return "", fmt.Errorf("%q is no currency", currency)
	}
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	if digits == 0 {
		return fmt.Sprintf("%s%d", sign, minor), nil
	}
	unit := int64(1)
	for range digits {
		unit *= 10
	}
	return fmt.Sprintf("%s%d.%0*d", sign, minor/unit, digits, minor%unit), nil
}

// Minor reads what Format wrote.
func Minor(amount, currency string) (int64, error) {
	digits, ok := plan.MinorDigits(currency)
	if !ok {
		return 0, fmt.Errorf("%q is no currency", currency)
	}
	text, negative := strings.CutPrefix(amount, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(fraction) != digits {
		return 0, fmt.Errorf("%q is no amount of %s", amount, currency)
	}
	var n int64
	for _, c := range []byte(whole + fraction) {
		if c < '0' || c > '9' || n > maxMinor {
			return 0, fmt.Errorf("%q is no amount of %s", amount, currency)
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}
