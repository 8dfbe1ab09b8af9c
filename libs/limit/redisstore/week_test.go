package redisstore

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// A week of a customer's own zone: back to zero at its Monday, with nothing
// left over, and an overdraft is not taken along.
func TestWeeklyRenewal(t *testing.T) {
	t.Parallel()
	istanbul, err := time.LoadLocation("Europe/Istanbul")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t) // Thursday
	c := limit.Counter{
		Key: "{t:acme}:t::calls:quota", Algorithm: limit.OverdraftQuota, Limit: 10, Cost: 1,
		Calendar: mustCalendar(period.Spec{Unit: period.NameWeek, Zone: "Europe/Istanbul"}),
	}
	if n := b.passes(15, c); n != 10 {
		t.Fatalf("%d of 15 passed", n)
	}
	monday := time.Date(2026, 7, 27, 0, 0, 0, 0, istanbul)
	b.wait(monday.Add(-time.Microsecond).Sub(b.now))
	if n := b.passes(1, c); n != 0 {
		t.Fatal("passed in the week's last instant")
	}
	b.wait(time.Microsecond)
	if n := b.passes(9, c); n != 9 {
		t.Fatalf("%d of 9 passed in the new week", n)
	}
	if d := b.decide(withCost(c, 5)); !d.Allowed || d.States[0].Consumed != 14 { // one is left: once
		t.Fatalf("%+v", d)
	}
	if d := b.decide(c); d.Allowed || !b.now.Add(d.States[0].RetryAfter).Equal(monday.AddDate(0, 0, 7)) {
		t.Fatalf("%+v", d)
	}
	b.wait(monday.AddDate(0, 0, 7).Sub(b.now))
	if n := b.passes(15, c); n != 10 {
		t.Fatalf("%d of 15 passed in the third week", n)
	}
}
