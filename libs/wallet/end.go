package wallet

import (
	"cmp"
	"slices"
	"time"
)

// Due returns the grant that is to be ended next at that time, false if none
// is: grants end one by one, the one that expired first before the others.
func (w Wallet) Due(now time.Time) (Grant, bool) {
	var due []Grant
	for _, g := range w.Grants {
		if !g.ExpiresAt.IsZero() && !now.Before(g.ExpiresAt) {
			due = append(due, g)
		}
	}
	if due == nil {
		return Grant{}, false
	}
	return slices.MinFunc(due, func(a, b Grant) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
	}), true
}

// NextExpiry is when the next grant ends, zero if none will.
func (w Wallet) NextExpiry() time.Time {
	var next time.Time
	for _, g := range w.Grants {
		if !g.ExpiresAt.IsZero() && (next.IsZero() || g.ExpiresAt.Before(next)) {
			next = g.ExpiresAt
		}
	}
	return next
}

// Claim is what is left of one grant, as a function of net use: it falls by one
// for each unit from Top − Left to Top, and the units before it are spent
// first; it grows by one for each unit that use falls below Bottom, up to
// Spent, and those after it are given back first.
type Claim struct{ Top, Left, Bottom, Spent int64 }

// At is what is left at that use; schemas/redis/forfeit.lua computes the same.
func (c Claim) At(used int64) int64 {
	return min(max(c.Top-used, 0), c.Left) + min(max(c.Bottom-used, 0), c.Spent)
}

// Claim returns a grant's, false if the wallet does not hold the grant.
func (w Wallet) Claim(id string) (Claim, bool) {
	w = w.sorted()
	at := slices.IndexFunc(w.Grants, func(g Grant) bool { return g.ID == id })
	if at < 0 {
		return Claim{}, false
	}
	g := &w.Grants[at]
	c := Claim{Top: w.Used + g.Left, Left: g.Left, Bottom: w.Used - w.Debt, Spent: g.Amount - g.Left}
	for i := range w.Grants[:at] {
		c.Top += w.Grants[i].Left
	}
	for i := range w.Grants[at+1:] {
		later := &w.Grants[at+1+i]
		c.Bottom -= later.Amount - later.Left
	}
	return c, true
}

// End returns the wallet without a grant of which that many units were
// forfeited; without that grant it is w. The amount was charged and is never
// wrong: where it is not what is left here, since use moved on between the two,
// the difference is spent from the other grants, or Returned.
func (w Wallet) End(id string, forfeited int64) Wallet {
	w = w.sorted()
	at := slices.IndexFunc(w.Grants, func(g Grant) bool { return g.ID == id })
	if at < 0 {
		return w
	}
	rest := w.Grants[at].Left - forfeited
	w.Grants = slices.Delete(w.Grants, at, at+1)
	if rest < 0 {
		w.take(-rest)
	} else {
		w.Returned += rest
		w.settle()
	}
	return w
}

// settle pays Debt with what was returned.
func (w *Wallet) settle() {
	part := min(w.Debt, w.Returned)
	w.Debt -= part
	w.Returned -= part
}
