package wallet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/libs/wallet"
)

var noon = time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)

func day(n int) time.Time { return noon.AddDate(0, 0, n) }

// left says what is left of each grant, in the order they are spent.
func left(w wallet.Wallet) (ids []string, units []int64) {
	for _, g := range w.Grants {
		ids, units = append(ids, g.ID), append(units, g.Left)
	}
	return ids, units
}

func expect(t *testing.T, w wallet.Wallet, ids []string, units []int64, balance int64) {
	t.Helper()
	gotIDs, gotUnits := left(w)
	if diff := cmp.Diff(ids, gotIDs) + cmp.Diff(units, gotUnits); diff != "" || w.Balance() != balance {
		t.Fatalf("balance %d, want %d; %s", w.Balance(), balance, diff)
	}
}

func TestGrantsAreSpentByPriorityThenSoonestToExpire(t *testing.T) {
	t.Parallel()
	var w wallet.Wallet
	for _, g := range []wallet.Grant{
		{ID: "ever", Amount: 10, GrantedAt: day(0)},
		{ID: "august", Amount: 10, ExpiresAt: day(30), GrantedAt: day(0)},
		{ID: "july", Amount: 10, ExpiresAt: day(10), GrantedAt: day(1)},
		{ID: "july-twin", Amount: 10, ExpiresAt: day(10), GrantedAt: day(0)},
		{ID: "gift", Amount: 10, ExpiresAt: day(90), Priority: 1, GrantedAt: day(2)},
	} {
		w = w.Add(g)
	}
	order := []string{"gift", "july-twin", "july", "august", "ever"}
	expect(t, w, order, []int64{10, 10, 10, 10, 10}, 50)
	expect(t, w.At(25), order, []int64{0, 0, 5, 10, 10}, 25)
	expect(t, w.At(25).At(12), order, []int64{0, 8, 10, 10, 10}, 38) // given back in the reverse order
	expect(t, w.At(60), order, []int64{0, 0, 0, 0, 0}, -10)
}

// Pitfall: of 200 granted in two grants 60 were used; when the first ends its 40
// go, and the other 100 stay.
func TestWhatAGrantLeavesIsForfeited(t *testing.T) {
	t.Parallel()
	w := wallet.Wallet{}.Add(wallet.Grant{ID: "a", Amount: 100, ExpiresAt: day(1)}).Add(wallet.Grant{ID: "b", Amount: 100}).At(60)
	due, ok := w.Due(day(1))
	if _, early := w.Due(day(1).Add(-1)); early || !ok || due.ID != "a" || !w.NextExpiry().Equal(day(1)) {
		t.Fatalf("due %v, %v", due, ok)
	}
	claim, _ := w.Claim("a")
	w = w.End("a", claim.At(60))
	expect(t, w, []string{"b"}, []int64{100}, 100)
	if _, ok := w.Due(day(99)); ok || !w.NextExpiry().IsZero() {
		t.Fatal("something is due still")
	}
	if again := w.End("a", 40); again.Balance() != 100 {
		t.Fatalf("ended twice: %d", again.Balance())
	}
}

// A unit of a grant that has ended comes back as one without an end.
func TestRefundAfterTheGrantEnded(t *testing.T) {
	t.Parallel()
	w := wallet.Wallet{}.Add(wallet.Grant{ID: "a", Amount: 100, ExpiresAt: day(1)}).At(60).End("a", 40)
	if w = w.At(50); w.Returned != 10 || w.Balance() != 10 {
		t.Fatalf("%+v", w)
	}
	if w = w.At(63); w.Returned != 0 || w.Debt != 3 {
		t.Fatalf("%+v", w)
	}
}

func TestOverdraftIsPaidByTheNextGrant(t *testing.T) {
	t.Parallel()
	w := wallet.Wallet{}.Add(wallet.Grant{ID: "a", Amount: 100}).At(200)
	expect(t, w, []string{"a"}, []int64{0}, -100)
	w = w.Add(wallet.Grant{ID: "b", Amount: 60})
	expect(t, w, []string{"a", "b"}, []int64{0, 0}, -40)
	w = w.Add(wallet.Grant{ID: "c", Amount: 60})
	expect(t, w, []string{"a", "b", "c"}, []int64{0, 0, 20}, 20)
}

// What was granted later takes no part in use before it, whatever its priority.
func TestALaterGrantDoesNotPayForEarlierUse(t *testing.T) {
	t.Parallel()
	w := wallet.Wallet{}.Add(wallet.Grant{ID: "a", Amount: 100, ExpiresAt: day(1)}).At(60)
	w = w.Add(wallet.Grant{ID: "b", Amount: 100, Priority: 9}).At(70)
	expect(t, w, []string{"b", "a"}, []int64{90, 40}, 130)
}
