package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	arithmetic "github.com/sluice-platform/sluice/libs/wallet"
)

const walletCounter = "{t:acme}:t::units:quota"

// prepaid is a charge of that wallet.
func prepaid(granted, cost int64) limit.Counter {
	return limit.Counter{Key: walletCounter, Algorithm: limit.PrepaidQuota, Prepaid: true, Granted: granted, Cost: cost}
}

func (b *bench) forfeit(f Forfeiture) (Outcome, error) {
	f.Counter = walletCounter
	if f.ExpiresAt.IsZero() {
		f.ExpiresAt = noon
	}
	if f.Deadline.IsZero() {
		f.Deadline = b.now.Add(time.Second)
	}
	return Forfeit(b.t.Context(), b.client, "p:", f)
}

// claimOf is what grant a of 100 has left before grant b of 100, after 60 units.
func claimOf(t *testing.T) arithmetic.Claim {
	w := arithmetic.Wallet{}.Add(arithmetic.Grant{ID: "a", Amount: 100, ExpiresAt: noon}).Add(arithmetic.Grant{ID: "b", Amount: 100}).At(60)
	claim, ok := w.Claim("a")
	if !ok {
		t.Fatal("no claim")
	}
	return claim
}

func TestForfeitTakesWhatIsLeftByTheUseItFinds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(prepaid(200, 70)) // ten more than the claim knew
	out, err := b.forfeit(Forfeiture{Claim: claimOf(t)})
	if err != nil || out.Units != 30 || out.Totals != (Totals{Consumed: 70, Forfeited: 30}) || !out.Now.Equal(noon) {
		t.Fatalf("%+v, %v", out, err)
	}
	if d := b.decide(prepaid(200, 100)); !d.Allowed || d.States[0].Remaining != 0 || d.States[0].Forfeited != 30 {
		t.Fatalf("%+v", d)
	}
}

// A call whose answer was lost is made again, also after more use: the units
// stay what they were. When its ledger row is there, the next grant is judged.
func TestForfeitOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(prepaid(200, 70))
	for range 3 {
		out, err := b.forfeit(Forfeiture{Claim: claimOf(t)})
		if err != nil || out.Units != 30 || out.Totals.Forfeited != 30 {
			t.Fatalf("%+v, %v", out, err)
		}
		b.decide(prepaid(200, 5))
	}
	next := arithmetic.Claim{Top: 200, Left: 100}
	out, err := b.forfeit(Forfeiture{Claim: next, Known: Totals{Consumed: 70, Forfeited: 30}})
	if err != nil || out.Units != 100 || out.Totals.Forfeited != 130 {
		t.Fatalf("%+v, %v", out, err)
	}
}

// A grant that expires with a month is usable up to the month's last
// microsecond, and forfeited from the next month's first: in one of them alone.
func TestAGrantThatExpiresWithAPeriodEndsInTheNext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end := period.Month().At(b.now).End
	w := arithmetic.Wallet{}.Add(arithmetic.Grant{ID: "a", Amount: 100, ExpiresAt: end})
	claim, _ := w.Claim("a")
	b.wait(end.Add(-time.Microsecond).Sub(b.now))
	if _, due := w.Due(b.now); due {
		t.Error("it is due within the month")
	}
	if n := b.passes(40, prepaid(100, 1)); n != 40 {
		t.Errorf("%d of 40 passed in the month's last microsecond", n)
	}
	if out, err := b.forfeit(Forfeiture{ExpiresAt: end, Claim: claim}); !errors.Is(err, ErrEarly) {
		t.Errorf("within the month: %+v, %v", out, err)
	}
	b.wait(time.Microsecond)
	if g, due := w.Due(b.now); !due || g.ID != "a" {
		t.Error("it is not due with the next month")
	}
	for range 2 {
		out, err := b.forfeit(Forfeiture{ExpiresAt: end, Claim: claim})
		if err != nil || out.Units != 60 || out.Totals != (Totals{Consumed: 40, Forfeited: 60}) || !out.Now.Equal(end) {
			t.Errorf("with the next month: %+v, %v", out, err)
		}
	}
	if n := b.passes(1, prepaid(100, 1)); n != 0 {
		t.Error("used after its end")
	}
}

func TestForfeitRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(prepaid(200, 70))
	for _, c := range []struct {
		name string
		f    Forfeiture
		want error
	}{
		{"a grant that ends later", Forfeiture{ExpiresAt: noon.Add(time.Microsecond)}, ErrEarly},
		{"a call that came too late", Forfeiture{Deadline: noon.Add(-time.Microsecond)}, ErrLate},
		{"lost use", Forfeiture{Known: Totals{Consumed: 71}}, ErrNotWhole},
		{"lost refunds", Forfeiture{Known: Totals{Consumed: 70, Refunded: 1}}, ErrNotWhole},
		{"lost forfeits", Forfeiture{Known: Totals{Consumed: 70, Forfeited: 1}}, ErrNotWhole},
	} {
		c.f.Claim = claimOf(t)
		if out, err := b.forfeit(c.f); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", c.name, out, err)
		}
	}
	if _, err := b.server.Get("p:" + walletCounter + ":f"); err == nil {
		t.Error("something was forfeited")
	}
	marker, err := b.server.Get("p:epoch")
	if err != nil {
		t.Fatal(err)
	}
	b.server.Del("p:epoch") // as after a loss
	if out, err := b.forfeit(Forfeiture{Claim: claimOf(t)}); !errors.Is(err, ErrNotWhole) {
		t.Errorf("without a marker: %+v, %v", out, err)
	}
	if err := b.server.Set("p:epoch", marker); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Set("p:"+walletCounter+":r", "many"); err != nil {
		t.Fatal(err)
	}
	if out, err := b.forfeit(Forfeiture{Claim: claimOf(t)}); err == nil {
		t.Errorf("of a broken counter: %+v", out)
	}
}

// The script and libs/wallet know the same of a grant, at any use.
func TestForfeitAgreesWithTheArithmetic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.Int64Range(0, 60).Draw(t, name) }
		consumed := n("consumed")
		refunded := rapid.Int64Range(0, consumed).Draw(t, "refunded")
		big := rapid.SampledFrom([]int64{0, 1 << 52}).Draw(t, "big") // exact near 2^53, too
		claim := arithmetic.Claim{Top: big + n("top"), Left: n("left"), Bottom: big + n("bottom"), Spent: n("spent")}
		c, r, gone, _ := Keys("p:", walletCounter)
		b.server.Del(gone)
		for key, value := range map[string]int64{c: big + consumed, r: refunded} {
			if err := b.server.Set(key, strconv.FormatInt(value, 10)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := b.forfeit(Forfeiture{Claim: claim})
		if want := claim.At(big + consumed - refunded); err != nil || out.Units != want || out.Totals.Forfeited != want {
			t.Fatalf("%+v of %d − %d: %+v, want %d; %v", claim, big+consumed, refunded, out, want, err)
		}
	})
}

func TestReadTotals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(prepaid(200, 70))
	b.decide(prepaid(200, -3))
	all, err := ReadTotals(t.Context(), b.client, "p:", []string{"{t:nobody}:t::units:quota", walletCounter})
	if err != nil || all[0] != (Totals{}) || all[1] != (Totals{Consumed: 70, Refunded: 3}) || all[1].Used() != 67 {
		t.Fatalf("%+v, %v", all, err)
	}
	if none, err := ReadTotals(t.Context(), b.client, "p:", nil); err != nil || none != nil {
		t.Fatalf("%+v, %v", none, err)
	}
	if err := b.server.Set("p:"+walletCounter+":c", "many"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTotals(t.Context(), b.client, "p:", []string{walletCounter}); err == nil {
		t.Fatal("a broken counter was read")
	}
}
