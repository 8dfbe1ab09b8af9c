package main

import (
	"errors"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var a, b, sum tally
	for i := range 1000 {
		to := &a
		if i%2 == 0 {
			to = &b
		}
		to.count(time.Duration(i+1)*time.Millisecond, i < 10, nil)
	}
	b.count(2*time.Second, false, errors.New("late"))
	sum.add(&a)
	sum.add(&b)
	for q, want := range map[float64]time.Duration{0.5: 501 * time.Millisecond, 0.99: 991 * time.Millisecond, 1: 2 * time.Second} {
		if got := sum.quantile(q); got < want*98/100 || got > want*102/100 {
			t.Errorf("quantile %g is %s, want %s within 2 %%", q, got, want)
		}
	}
	if sum.Reads != 1001 || sum.Max != 2*time.Second || sum.Errors != 1 || sum.Stale != 10 || sum.Fault != "late" {
		t.Errorf("%+v", &sum)
	}
	if none := new(tally).quantile(0.5); none != 0 {
		t.Errorf("no reads take %s", none)
	}
}

func TestStaleIsOlderThanTheTTL(t *testing.T) {
	t.Parallel()
	loaded := time.Unix(1_800_000_000, 0)
	v := value(7, loaded)
	for age, want := range map[time.Duration]bool{0: false, time.Minute: false, time.Minute + staleSlack: false, 61 * time.Second: true} {
		if got := stale(v, loaded.Add(age), time.Minute); got != want {
			t.Errorf("%s after its load it is stale: %v", age, got)
		}
	}
}
