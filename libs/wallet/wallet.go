package wallet

import (
	"cmp"
	"slices"
	"time"
)

// MaxTotal is the largest sum of all grants of a wallet, in units: the scripts'
// numbers are doubles.
const MaxTotal = 1<<53 - 1

// Grant is units that were granted at once.
type Grant struct {
	// ID is the grant's own, and the last to decide about the order.
	ID string
	// Amount was granted, 1 to MaxTotal; Left, 0 to Amount, is what use has not
	// taken.
	Amount, Left int64
	// Priority: the higher is spent first.
	Priority int
	// ExpiresAt is the first instant at which it is no longer usable; zero is
	// never.
	ExpiresAt time.Time
	// GrantedAt is when it was granted.
	GrantedAt time.Time
}

// Wallet is the grants that have not ended, as of a net use.
type Wallet struct {
	// Used is consumed − refunded, which the rest is worked out for.
	Used int64
	// Debt is use beyond all grants.
	Debt int64
	// Returned are units given back after their grant had ended.
	Returned int64
	// Grants are in any order. The functions here return them in that in which
	// they are spent.
	Grants []Grant
}

// before is the order in which grants are spent.
func (g *Grant) before(o *Grant) int {
	switch {
	case g.Priority != o.Priority:
		return cmp.Compare(o.Priority, g.Priority)
	case g.ExpiresAt.IsZero() && !o.ExpiresAt.IsZero():
		return 1
	case !g.ExpiresAt.IsZero() && o.ExpiresAt.IsZero():
		return -1
	case !g.ExpiresAt.Equal(o.ExpiresAt):
		return g.ExpiresAt.Compare(o.ExpiresAt)
	case !g.GrantedAt.Equal(o.GrantedAt):
		return g.GrantedAt.Compare(o.GrantedAt)
	}
	return cmp.Compare(g.ID, o.ID)
}

// sorted returns a copy with the grants in the order they are spent.
func (w Wallet) sorted() Wallet {
	w.Grants = slices.Clone(w.Grants)
	slices.SortFunc(w.Grants, func(a, b Grant) int { return a.before(&b) })
	return w
}

// Balance is what may still be spent, negative while there is Debt.
func (w Wallet) Balance() int64 {
	sum := w.Returned - w.Debt
	for i := range w.Grants {
		sum += w.Grants[i].Left
	}
	return sum
}

// At returns the wallet as of another net use.
func (w Wallet) At(used int64) Wallet {
	w = w.sorted()
	if n := used - w.Used; n > 0 {
		w.take(n)
	} else {
		w.give(-n)
	}
	w.Used = used
	return w
}

// Add returns the wallet with another grant, whose Left is worked out: it first
// pays the Debt.
func (w Wallet) Add(g Grant) Wallet {
	pays := min(w.Debt, g.Amount)
	g.Left = g.Amount - pays
	w.Debt -= pays
	w.Grants = append(slices.Clone(w.Grants), g)
	return w.sorted()
}

// take spends n units. The grants are w's own, and sorted.
func (w *Wallet) take(n int64) {
	for i := range w.Grants {
		part := min(n, w.Grants[i].Left)
		w.Grants[i].Left -= part
		n -= part
	}
	part := min(n, w.Returned)
	w.Returned -= part
	w.Debt += n - part
}

// give undoes the spending of n units.
func (w *Wallet) give(n int64) {
	part := min(n, w.Debt)
	w.Debt -= part
	n -= part
	for i := len(w.Grants) - 1; i >= 0; i-- {
		g := &w.Grants[i]
		part = min(n, g.Amount-g.Left)
		g.Left += part
		n -= part
	}
	w.Returned += n
}
