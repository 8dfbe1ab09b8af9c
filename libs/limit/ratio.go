package limit

import (
	"math/big"
	"math/bits"
)

// ratio is an exact rational number: whole + num ÷ den, 0 <= num < den, where
// that fits, as it does for nearly all that a Model holds, and wide where it
// does not. The zero value is 0.
type ratio struct {
	whole    int64
	num, den uint64 // den 0 is 1
	wide     *big.Rat
}

func integer(n int64) ratio { return ratio{whole: n, den: 1} }

// quotient returns a·b ÷ c; c is above 0.
func quotient(a, b, c int64) ratio {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if r, ok := divided(hi, lo, uint64(c)); ok {
		if (a < 0) != (b < 0) {
			return r.negative()
		}
		return r
	}
	r := big.NewRat(a, c)
	return narrow(r.Mul(r, new(big.Rat).SetInt64(b)))
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// divided returns a number of 128 bits ÷ den; ok is false where it does not fit.
func divided(hi, lo, den uint64) (r ratio, ok bool) {
	if hi >= den {
		return ratio{}, false
	}
	q, rem := bits.Div64(hi, lo, den)
	return ratio{whole: int64(q), num: rem, den: den}, q < 1<<62
}

// rat returns the number as the standard library has it.
func (r ratio) rat() *big.Rat {
	if r.wide != nil {
		return r.wide
	}
	den := new(big.Int).SetUint64(max(r.den, 1))
	num := new(big.Int).Mul(big.NewInt(r.whole), den)
	return new(big.Rat).SetFrac(num.Add(num, new(big.Int).SetUint64(r.num)), den)
}

// narrow returns the number in 64-bit parts where it fits; r is its own then.
func narrow(r *big.Rat) ratio {
	whole, rem := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if r.Denom().BitLen() > 62 || whole.BitLen() > 62 {
		return ratio{wide: r}
	}
	return ratio{whole: whole.Int64(), num: rem.Uint64(), den: r.Denom().Uint64()}
}

func (r ratio) negative() ratio {
	switch {
	case r.wide != nil:
		return ratio{wide: new(big.Rat).Neg(r.wide)}
	case r.num == 0:
		return ratio{whole: -r.whole, den: 1}
	}
	return ratio{whole: -r.whole - 1, num: r.den - r.num, den: r.den}
}

func (r ratio) plus(o ratio) ratio {
	whole := r.whole + o.whole
	if r.wide == nil && o.wide == nil && magnitude(whole) < 1<<62 {
		switch {
		case o.num == 0:
			return ratio{whole: whole, num: r.num, den: r.den}
		case r.num == 0:
			return ratio{whole: whole, num: o.num, den: o.den}
		case r.den == o.den:
			return carried(whole, r.num+o.num, r.den)
		case r.den < 1<<31 && o.den < 1<<31:
			return carried(whole, r.num*o.den+o.num*r.den, r.den*o.den)
		}
	}
	return narrow(new(big.Rat).Add(r.rat(), o.rat()))
}

// carried returns whole + num ÷ den, which is below 2.
func carried(whole int64, num, den uint64) ratio {
	if num >= den {
		whole, num = whole+1, num-den
	}
	return ratio{whole, num, den, nil}
}

func (r ratio) minus(o ratio) ratio { return r.plus(o.negative()) }

// times returns r·a ÷ b; b is above 0.
func (r ratio) times(a, b int64) ratio {
	if n, ok := r.improper(); ok && a >= 0 {
		den := max(r.den, 1)
		common := gcd(n, uint64(b))
		n, b := n/common, uint64(b)/common
		common = gcd(uint64(a), den)
		den /= common
		hi, lo := bits.Mul64(n, uint64(a)/common)
		if over, under := bits.Mul64(den, b); over == 0 && under < 1<<62 {
			if r, ok := divided(hi, lo, under); ok {
				return r
			}
		}
	}
	return narrow(new(big.Rat).Mul(r.rat(), big.NewRat(a, b)))
}

// improper returns r·den, of a number that is not negative, where it fits.
func (r ratio) improper() (n uint64, ok bool) {
	if r.wide != nil || r.whole < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(r.whole), max(r.den, 1))
	n, carry := bits.Add64(lo, r.num, 0)
	return n, hi+carry == 0
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

// cmp returns -1, 0 or 1: whether r is less than o, the same or more.
func (r ratio) cmp(o ratio) int {
	if r.wide != nil || o.wide != nil {
		return r.rat().Cmp(o.rat())
	}
	if r.whole != o.whole {
		return order(r.whole < o.whole)
	}
	hi, lo := bits.Mul64(r.num, max(o.den, 1))
	otherHi, otherLo := bits.Mul64(o.num, max(r.den, 1))
	switch {
	case hi != otherHi:
		return order(hi < otherHi)
	case lo != otherLo:
		return order(lo < otherLo)
	}
	return 0
}

func order(less bool) int {
	if less {
		return -1
	}
	return 1
}

func (r ratio) sign() int { return r.cmp(ratio{}) }

func lesser(a, b ratio) ratio {
	if a.cmp(b) < 0 {
		return a
	}
	return b
}

// floor rounds down to an integer; it must fit.
func (r ratio) floor() int64 {
	if r.wide != nil {
		return new(big.Int).Div(r.wide.Num(), r.wide.Denom()).Int64()
	}
	return r.whole
}

// ceil rounds up.
func (r ratio) ceil() int64 { return -r.negative().floor() }
