package plan

import "strings"

const (
	// NanoDigits is how many digits behind the point a price may have: money is
	// worked out in billionths of the currency's unit.
	NanoDigits = 9
	maxWhole   = 9 // digits before the point
)

// Nanos reads a decimal such as 0.0004 as billionths of the currency's unit,
// exactly; the empty text is 0. ok is false for anything but one to nine digits
// and, behind a point, one to nine more: no sign, no exponent.
func Nanos(text string) (nanos int64, ok bool) {
	if text == "" {
		return 0, true
	}
	whole, fraction, point := strings.Cut(text, ".")
	if len(whole) < 1 || len(whole) > maxWhole || len(fraction) > NanoDigits || point && fraction == "" {
		return 0, false
	}
	for i := range len(whole) {
		nanos, ok = digit(nanos, whole[i])
		if !ok {
			return 0, false
		}
	}
	for i := range NanoDigits {
		c := byte('0')
		if i < len(fraction) {
			c = fraction[i]
		}
		if nanos, ok = digit(nanos, c); !ok {
			return 0, false
		}
	}
	return nanos, true
}

func digit(n int64, c byte) (int64, bool) {
	if c < '0' || c > '9' {
		return 0, false
	}
	return 10*n + int64(c-'0'), true
}

// unitPrice checks a price a unit, which may be a fraction of a minor unit.
func (v *validator) unitPrice(field, text string) {
	if _, ok := Nanos(text); !ok {
		v.add(field, `must be a decimal in quotes such as "0.0004": at most %d digits, and %d behind the point`, maxWhole, NanoDigits)
	}
}

// fee checks an amount that is paid as it is: whole minor units of the currency.
func (v *validator) fee(field, text, currency string) {
	digits, known := MinorDigits(currency)
	if !known {
		digits = NanoDigits // the currency is refused elsewhere
	}
	_, fraction, _ := strings.Cut(text, ".")
	if _, ok := Nanos(text); !ok || len(fraction) > digits {
		v.add(field, `must be a decimal in quotes such as "49": at most %d digits, and %d behind the point for %s`, maxWhole, digits, currency)
	}
}
