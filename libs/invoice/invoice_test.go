package invoice

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func upTo(n int64) *int64 { return &n }

var tiers = []sales.Tier{
	{UpTo: upTo(1000), UnitPrice: "0.01", FlatFee: "5.00"},
	{UpTo: upTo(10_000), UnitPrice: "0.004"},
	{UnitPrice: "0.0005", FlatFee: "1.00"},
}

func TestPrice(t *testing.T) {
	t.Parallel()
	flat := sales.Price{Metric: "calls", Model: sales.PriceFlat, UnitPrice: "0.0004", Included: 100}
	graduated := sales.Price{Metric: "calls", Model: sales.PriceGraduated, Tiers: tiers, Included: 100}
	volume := sales.Price{Metric: "calls", Model: sales.PriceVolume, Tiers: tiers}
	for _, c := range []struct {
		name     string
		price    sales.Price
		quantity int64
		want     []Part
	}{
		{"nothing", flat, 0, nil},
		{"included", flat, 100, []Part{{Quantity: 100, UnitPrice: "0", Included: true}}},
		{"half a cent rounds up", flat, 100 + 13, []Part{{Quantity: 100, UnitPrice: "0", Included: true}, {Quantity: 13, UnitPrice: "0.0004", Minor: 1}}},
		{"less rounds down", flat, 100 + 12, []Part{{Quantity: 100, UnitPrice: "0", Included: true}, {Quantity: 12, UnitPrice: "0.0004"}}},
		{"the first tier's end", graduated, 1100, []Part{
			{Quantity: 100, UnitPrice: "0", Included: true}, {Quantity: 1000, UnitPrice: "0.01", Minor: 1000}, {Fee: true, Minor: 500}}},
		{"one unit beyond", graduated, 1101, []Part{
			{Quantity: 100, UnitPrice: "0", Included: true}, {Quantity: 1000, UnitPrice: "0.01", Minor: 1000}, {Fee: true, Minor: 500}, {Quantity: 1, UnitPrice: "0.004"}}},
		{"all tiers", graduated, 20_100, []Part{
			{Quantity: 100, UnitPrice: "0", Included: true}, {Quantity: 1000, UnitPrice: "0.01", Minor: 1000}, {Fee: true, Minor: 500},
			{Quantity: 9000, UnitPrice: "0.004", Minor: 3600}, {Quantity: 10_000, UnitPrice: "0.0005", Minor: 500}, {Fee: true, Minor: 100}}},
		{"volume, at an end", volume, 10_000, []Part{{Quantity: 10_000, UnitPrice: "0.004", Minor: 4000}}},
		{"volume, all at the last price", volume, 10_001, []Part{{Quantity: 10_001, UnitPrice: "0.0005", Minor: 500}, {Fee: true, Minor: 100}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Price(c.price, 2, c.quantity)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// Whatever the tiers, every unit is in one part, and each part's amount is the
// exact product, rounded once.
func TestPartsHoldEachUnitOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "digits")
		p := sales.Price{Metric: "m", Model: rapid.SampledFrom([]string{sales.PriceGraduated, sales.PriceVolume}).Draw(t, "model")}
		p.Included = rapid.Int64Range(0, 50).Draw(t, "included")
		end := int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "tiers") {
			end += rapid.Int64Range(1, 1000).Draw(t, "size")
			p.Tiers = append(p.Tiers, sales.Tier{UpTo: upTo(end), UnitPrice: rapid.StringMatching(`[0-9]{1,3}\.[0-9]{1,9}`).Draw(t, "price")})
		}
		p.Tiers = append(p.Tiers, sales.Tier{UnitPrice: "0.5"})
		quantity := rapid.OneOf(rapid.Int64Range(0, end+100), rapid.Int64Range(0, 1<<40)).Draw(t, "quantity")
		parts, err := Price(p, digits, quantity)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, part := range parts {
			sum += part.Quantity
			if want := exact(t, part, digits); part.Minor != want {
				t.Fatalf("%d units at %s are %d, not %d", part.Quantity, part.UnitPrice, part.Minor, want)
			}
		}
		if sum != quantity {
			t.Fatalf("%d units in parts of %d", sum, quantity)
		}
	})
}

func exact(t *rapid.T, p Part, digits int) int64 {
	price, ok := new(big.Rat).SetString(p.UnitPrice)
	if !ok {
		t.Fatalf("%q", p.UnitPrice)
	}
	price.Mul(price, new(big.Rat).SetInt64(p.Quantity))
	for range digits {
		price.Mul(price, big.NewRat(10, 1))
	}
	price.Add(price, big.NewRat(1, 2))
	return new(big.Int).Quo(price.Num(), price.Denom()).Int64()
}

func TestAmountsThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	p := sales.Price{Metric: "m", Model: sales.PriceFlat, UnitPrice: "999999999"}
	if _, err := Price(p, 2, 1<<53); !errors.Is(err, ErrTooMuch) {
		t.Fatalf("got %v", err)
	}
	if _, err := Price(p, 3, 1<<40); !errors.Is(err, ErrTooMuch) {
		t.Fatalf("got %v", err)
	}
}

func TestFormatAndMinorAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-maxMinor, maxMinor).Draw(t, "minor")
		currency := rapid.SampledFrom([]string{"EUR", "JPY", "BHD"}).Draw(t, "currency")
		text, err := Format(n, currency)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Minor(text, currency); err != nil || back != n {
			t.Fatalf("%d is %s is %d, %v", n, text, back, err)
		}
	})
	for _, bad := range []string{"", "1", "1.5", "1.234", "-", "+1.00", "1,00", "99999999999999999.00"} {
		if n, err := Minor(bad, "EUR"); err == nil {
			t.Errorf("%q is %d", bad, n)
		}
	}
}

func month(t *testing.T, at time.Time) period.Bounds {
	t.Helper()
	return period.Month().At(at)
}

var july = time.Date(2026, 7, 10, 0, 0, 0, 0, time.UTC)

func sold() sales.Plan {
	return sales.Plan{
		ID: "pro", Version: 3, Name: "Pro", Currency: "EUR", Period: "month", BaseFee: "31.00", Proration: sales.ProrationNone,
		Rules: []sales.Template{
			{Metric: "calls", Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing}},
			{Metric: "sms", Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid}},
		},
		Prices: []sales.Price{
			{Metric: "calls", Model: sales.PriceFlat, UnitPrice: "0.01", Included: 1000},
			{Metric: "sms", Model: sales.PriceFlat, UnitPrice: "0.05"},
		},
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	b := month(t, july)
	got, err := Draw(Input{
		Customer: sales.Customer{ID: "acme", Name: "Acme"}, Currency: "EUR", Period: b,
		Held:        []Held{{Plan: sold(), Days: 31}},
		Used:        map[string]Use{"calls": {Counter: "c", Consumed: 1530, Refunded: 30}, "sms": {Consumed: 999}},
		Topped:      map[string]int64{"sms": 200},
		Corrections: []Correction{{Invoice: "i1", Number: "INV-2026-000001", Metric: "calls", Units: -7, Minor: -7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := sales.Invoice{
		Customer: "acme", Payer: sales.Customer{ID: "acme", Name: "Acme"}, Currency: "EUR", Start: b.Start, End: b.End, Total: "45.93",
		Lines: []sales.InvoiceLine{
			{Kind: sales.LineFee, Plan: "pro", PlanVersion: 3, Text: "Pro: fee", Quantity: 31, PeriodFee: "31.00", Amount: "31.00"},
			{Kind: sales.LineUsage, Plan: "pro", PlanVersion: 3, Metric: "calls", Text: "calls: included", Quantity: 1000, UnitPrice: "0", Amount: "0.00", Counter: "c", Consumed: 1530, Refunded: 30},
			{Kind: sales.LineUsage, Plan: "pro", PlanVersion: 3, Metric: "calls", Text: "calls: used", Quantity: 500, UnitPrice: "0.01", Amount: "5.00"},
			{Kind: sales.LineTopup, Plan: "pro", PlanVersion: 3, Metric: "sms", Text: "sms: topped up", Quantity: 200, UnitPrice: "0.05", Amount: "10.00"},
			{Kind: sales.LineCorrection, Metric: "calls", Text: "calls: correction of INV-2026-000001, known later", Quantity: -7, Amount: "-0.07", Corrects: "i1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestHeldIn(t *testing.T) {
	t.Parallel()
	b := month(t, july)
	days := sold()
	days.Version, days.Proration, days.BaseFee = 4, sales.ProrationDays, "62.00"
	plans := map[plan.Version]sales.Plan{{Plan: "pro", Number: 3}: sold(), {Plan: "pro", Number: 4}: days}
	at := func(day, hour int) time.Time { return time.Date(2026, 7, day, hour, 0, 0, 0, time.UTC) }
	ended := at(21, 0)
	for _, c := range []struct {
		name string
		sub  sales.Subscription
		want []Held
	}{
		{"not yet", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 3, From: b.End}}}, nil},
		{"ended before", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 3, From: at(-9, 0)}}, EndsAt: &b.Start}, nil},
		{"whole, whenever it began", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 3, From: at(31, 23)}}}, []Held{{Plan: sold(), Days: 31}}},
		{"by days from the one begun", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 4, From: at(10, 15)}}}, []Held{{Plan: days, Days: 22}}},
		{"to its end", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 4, From: at(-3, 0)}}, EndsAt: &ended}, []Held{{Plan: days, Days: 20}}},
		{"two versions share a day never", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 3, From: at(-3, 0)}, {Plan: "pro", PlanVersion: 4, From: at(10, 15)}}},
			[]Held{{Plan: sold(), Days: 9, FeeOnly: true}, {Plan: days, Days: 22}}},
		{"the last decides", sales.Subscription{Phases: []sales.Phase{{Plan: "pro", PlanVersion: 4, From: at(-3, 0)}, {Plan: "pro", PlanVersion: 3, From: at(10, 15)}}},
			[]Held{{Plan: sold(), Days: 31}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := HeldIn(c.sub, plans, b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	if _, err := HeldIn(sales.Subscription{ID: "s", Phases: []sales.Phase{{Plan: "gone", PlanVersion: 1, From: b.Start}}}, plans, b); err == nil {
		t.Error("an unknown version is passed over")
	}
}

func TestAFeeIsSharedByDays(t *testing.T) {
	t.Parallel()
	p := sold()
	p.Prices = nil
	got, err := Draw(Input{Customer: sales.Customer{ID: "acme"}, Currency: "EUR", Period: month(t, july), Held: []Held{{Plan: p, Days: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Total != "10.00" || got.Lines[0].Text != "Pro: fee, 10 of 31 days" || got.Lines[0].PeriodFee != "31.00" {
		t.Fatalf("%+v", got)
	}
}

func TestCorrect(t *testing.T) {
	t.Parallel()
	plans := map[plan.Version]sales.Plan{{Plan: "pro", Number: 3}: sold()}
	draw := func(use Use, corrections ...Correction) sales.Invoice {
		i, err := Draw(Input{
			Customer: sales.Customer{ID: "acme"}, Currency: "EUR", Period: month(t, july), Held: []Held{{Plan: sold(), Days: 31}},
			Used: map[string]Use{"calls": use}, Corrections: corrections,
		})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	final := draw(Use{Counter: "c", Consumed: 990})
	final.ID, final.Number = "i1", "INV-2026-000001"
	correct := func(later []sales.Invoice, use Use) []Correction {
		t.Helper()
		got, err := Correct(final, later, map[string]Use{"c": use}, plans)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	none := []Correction(nil)
	for name, c := range map[string]struct {
		use  Use
		want []Correction
	}{
		"nothing new":               {Use{Consumed: 990}, none},
		"late, and still included":  {Use{Consumed: 1000}, []Correction{{"i1", "INV-2026-000001", "calls", 10, 0}}},
		"late, and beyond":          {Use{Consumed: 1020}, []Correction{{"i1", "INV-2026-000001", "calls", 30, 20}}},
		"refunded later":            {Use{Consumed: 990, Refunded: 90}, []Correction{{"i1", "INV-2026-000001", "calls", -90, 0}}},
		"late and refunded at once": {Use{Consumed: 1090, Refunded: 100}, none},
		"a lower number is no news": {Use{Consumed: 900}, none},
	} {
		if diff := cmp.Diff(c.want, correct(nil, c.use)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got, err := Correct(final, nil, nil, plans); err != nil || got != nil {
		t.Errorf("of nothing known: %v, %v", got, err)
	}
	// Once it is on a final invoice, only what came since is corrected.
	later := draw(Use{}, correct(nil, Use{Consumed: 1020})...)
	later.ID = "i2"
	if got := correct([]sales.Invoice{later}, Use{Consumed: 1020}); got != nil {
		t.Errorf("corrected twice: %+v", got)
	}
	want := []Correction{{"i1", "INV-2026-000001", "calls", 5, 5}}
	if diff := cmp.Diff(want, correct([]sales.Invoice{later}, Use{Consumed: 1025})); diff != "" {
		t.Error(diff)
	}
}

// Of a plan that is free an invoice has no line, whatever was used, and of any
// other plan it has one, though nothing was: who is told by plan.Free that nothing
// will be owed, and who draws, say the same.
func TestOnlyFreePlansHaveNoLines(t *testing.T) {
	t.Parallel()
	price := []sales.Price{{Metric: "calls", Model: sales.PriceFlat, UnitPrice: "0"}}
	for _, c := range []struct {
		fee    string
		prices []sales.Price
		free   bool
	}{
		{"", nil, true}, {"0", nil, true}, {"0.00", nil, true}, {"0.01", nil, false}, {"", price, false}, {"0.00", price, false},
	} {
		p := sales.Plan{ID: "p", Version: 1, Currency: "EUR", BaseFee: c.fee, Prices: c.prices}
		month := period.Month().At(time.Date(2026, 7, 16, 0, 0, 0, 0, time.UTC))
		for _, used := range []int64{0, 1000} {
			drawn, err := Draw(Input{Currency: "EUR", Period: month, Held: []Held{{Plan: p, Days: 31}}, Used: map[string]Use{"calls": {Consumed: used}}})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Free(p) != c.free || (len(drawn.Lines) == 0) != c.free {
				t.Errorf("fee %q, prices %v, %d used: free %t, lines %v", c.fee, c.prices, used, plan.Free(p), drawn.Lines)
			}
		}
	}
}
