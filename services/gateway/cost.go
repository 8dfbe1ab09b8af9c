package gateway

import (
	"github.com/sluice-platform/sluice/libs/limit"
)

// headerCost is what a trusted caller says the request costs.
const headerCost = "Sluice-Cost"

// takeCallersCost reads the cost that a trusted peer names. Anybody else's is
// as if it were not there, and nobody's is forwarded.
func (g *gate) takeCallersCost(x *exchange) bool {
	values := x.r.Header[headerCost]
	if !x.trustedPeer || len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return g.refuseHeader(x, headerCost+" is there more than once")
	}
	cost, ok := parseCost(values[0])
	if !ok {
		return g.refuseHeader(x, headerCost+" is not a whole number of units from 0 to 2^53")
	}
	x.callersCost, x.costIsCallers = cost, true
	return true
}

// parseCost reads a whole number of units, 0 to 2^53, in decimal digits and
// nothing else: no sign, no fraction, no space.
func parseCost(s string) (units int64, ok bool) {
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
