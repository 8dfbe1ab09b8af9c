package identify

import (
	"net/http"

	"github.com/sluice-platform/sluice/libs/limit"
)

// HeaderCost is what a trusted peer says the request costs.
const HeaderCost = "Sluice-Cost"

// statedCost reads the cost that a trusted peer names. That of any other peer is
// ignored, and none is forwarded.
func statedCost(h http.Header) (cost int64, stated bool, bad string) {
	values := h[HeaderCost]
	switch {
	case len(values) == 0:
		return 0, false, ""
	case len(values) > 1:
		return 0, false, HeaderCost + " is there more than once"
	}
	cost, ok := ParseCost(values[0])
	if !ok {
		return 0, false, HeaderCost + " is not a whole number of units from 0 to 2^53"
	}
	return cost, true, ""
}

// ParseCost reads a whole number of units, 0 to 2^53, in decimal digits and
// nothing else: no sign, no fraction, no space.
func ParseCost(s string) (units int64, ok bool) {
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		// At most 2^53 before, so this is below 2^57.
		if units = units*10 + int64(c-'0'); units > limit.MaxInteger {
			return 0, false
		}
	}
	return units, true
}
