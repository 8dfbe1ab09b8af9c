package wallet_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/wallet"
)

// history is a wallet with the totals that its balance is made of, kept apart.
type history struct {
	w                        wallet.Wallet
	granted, used, forfeited int64
	n                        int
}

func (h *history) grant(t *rapid.T) {
	h.n++
	g := wallet.Grant{
		ID: fmt.Sprintf("g%02d", h.n), Amount: rapid.Int64Range(1, 50).Draw(t, "amount"),
		Priority: rapid.IntRange(0, 2).Draw(t, "priority"), GrantedAt: day(h.n / 3),
	}
	if days := rapid.IntRange(0, 4).Draw(t, "days"); days > 0 {
		g.ExpiresAt = day(days)
	}
	h.w, h.granted = h.w.Add(g), h.granted+g.Amount
}

func (h *history) use(t *rapid.T) {
	h.used = rapid.Int64Range(max(0, h.used-60), h.used+60).Draw(t, "used")
	h.w = h.w.At(h.used)
}

// end forfeits what a script would that sees other use than the wallet, and
// whose answer is heard when use has moved on once more.
func (h *history) end(t *rapid.T) {
	g, ok := h.w.Due(day(rapid.IntRange(1, 4).Draw(t, "now")))
	if !ok {
		return
	}
	claim, _ := h.w.Claim(g.ID)
	seen := rapid.Int64Range(max(0, h.used-30), h.used+30).Draw(t, "seen")
	units := claim.At(seen)
	if alone := h.w.At(seen); units != leftOf(alone, g.ID) {
		t.Fatalf("the claim says %d of %s are left at %d, the wallet %d", units, g.ID, seen, leftOf(alone, g.ID))
	}
	h.used = rapid.Int64Range(max(0, h.used-30), h.used+30).Draw(t, "used")
	h.w, h.forfeited = h.w.At(h.used).End(g.ID, units), h.forfeited+units
}

func leftOf(w wallet.Wallet, id string) int64 {
	for _, g := range w.Grants {
		if g.ID == id {
			return g.Left
		}
	}
	return -1
}

func (h *history) check(t *rapid.T) {
	w := h.w
	if want := h.granted - h.used - h.forfeited; w.Balance() != want {
		t.Fatalf("balance %d, want granted %d − used %d − forfeited %d: %+v", w.Balance(), h.granted, h.used, h.forfeited, w)
	}
	if w.Debt < 0 || w.Returned < 0 || w.Debt > 0 && w.Balance()+w.Debt != 0 {
		t.Fatalf("debt and something left: %+v", w)
	}
	for i, g := range w.Grants {
		if g.Left < 0 || g.Left > g.Amount {
			t.Fatalf("%+v", g)
		}
		// Whatever is spent next comes from the first that has any.
		if next := w.At(h.used + 1); g.Left > 0 && !slices.ContainsFunc(w.Grants[:i], func(o wallet.Grant) bool { return o.Left > 0 }) {
			if leftOf(next, g.ID) != g.Left-1 {
				t.Fatalf("a unit was not taken from %s: %+v", g.ID, next)
			}
		}
	}
	if again := w.At(h.used); fmt.Sprint(again) != fmt.Sprint(w) {
		t.Fatalf("moving to the same use changed it:\n%+v\n%+v", w, again)
	}
	there := h.used + 17
	if back := w.At(there).At(h.used); back.Balance() != w.Balance() {
		t.Fatalf("there and back again: %+v", back)
	}
}

func TestHistoriesKeepTheBalance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		t.Repeat(map[string]func(*rapid.T){"grant": h.grant, "use": h.use, "end": h.end, "": h.check})
	})
}

// Moving in steps is moving at once, as long as use only grows.
func TestStepsOfUseDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		for range rapid.IntRange(1, 6).Draw(t, "grants") {
			h.grant(t)
		}
		steps := rapid.SliceOfN(rapid.Int64Range(0, 40), 1, 6).Draw(t, "steps")
		w, sum := h.w, int64(0)
		for _, n := range steps {
			sum += n
			w = w.At(sum)
		}
		if once := h.w.At(sum); fmt.Sprint(once) != fmt.Sprint(w) {
			t.Fatalf("at once %+v\nin steps %+v", once, w)
		}
	})
}
