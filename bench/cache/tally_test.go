package main

import (
	"errors"
	"testing"
	"time"
)

func TestTalliesAddUp(t *testing.T) {
	t.Parallel()
	var a, sum tally
	a.count(time.Second, true, nil)
	a.count(2*time.Second, false, errors.New("late"))
	sum.add(&a)
	sum.add(&a)
	if sum.Took.N != 4 || sum.Took.Max != 2*time.Second || sum.Errors != 2 || sum.Stale != 2 || sum.Fault != "late" {
		t.Errorf("%+v", &sum)
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
