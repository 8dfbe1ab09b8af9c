package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// placedOf asks the gates about one question, as restore() of the world does.
func placeOf(q question, now Units, lost map[string][]lostCall, gates map[string]*memory) Placed {
	accounts := map[string]account{}
	for name := range gates {
		accounts[name] = account{Peers: map[string]int64{}, Lost: lost[name]}
	}
	since, all := questions(accounts), slices.Sorted(maps.Keys(accounts))
	for name, m := range gates {
		a := accounts[name]
		a.Heard, a.Shares = all, map[string]share{}
		for q, at := range since {
			a.Shares[q.String()] = m.since(worldKey, q.marker, at)
		}
		accounts[name] = a
	}
	return lostCallsOf(accounts).place(q, now)
}

func seenAt(c, r, at int64) seen { return seen{consumed: c, refunded: r, at: at} }

// A call lost under one marker is asked about again in the restore after next:
// its gateway was paused while M2 was whole. b gave back 2 under M1, and charged 1
// under M2.
func TestACallAskedAboutTwoMarkersLaterIsUnknown(t *testing.T) {
	t.Parallel()
	s := time.Second.Microseconds()
	t0 := 1000 * s
	a, b := newMemory(1000), newMemory(1000)
	for _, m := range []*memory{a, b} {
		m.learn(worldKey, seenAt(10, 0, t0), "M1", Units{})
	}
	lost := map[string][]lostCall{"a": {{"c", "M1", t0 + 5*s, Units{Consumed: 3}}}} // it never came to Redis
	b.learn(worldKey, seenAt(10, 2, t0+6*s), "M1", Units{Refunded: 2})
	if one := placeOf(question{"c", "M1"}, Units{10, 2}, lost, map[string]*memory{"a": a, "b": b}); one.Found != 0 {
		t.Fatalf("first restore: %+v", one)
	}
	b.learn(worldKey, seenAt(11, 2, t0+8*s), "M2", Units{Consumed: 1})
	if one := placeOf(question{"c", "M1"}, Units{11, 2}, lost, map[string]*memory{"a": a, "b": b}); one.Found > 0 {
		t.Fatalf("second restore takes out %d units that were admitted: %+v", one.Found, one)
	}
}

// Redis's clock is set back by 1 s between a refund and the next answer.
func TestAClockSetBackGivesNothingAway(t *testing.T) {
	t.Parallel()
	s := time.Second.Microseconds()
	t0 := 1000 * s
	a, b, d := newMemory(1000), newMemory(1000), newMemory(1000)
	for _, m := range []*memory{a, b, d} {
		m.learn(worldKey, seenAt(10, 0, t0), "M1", Units{})
	}
	lost := map[string][]lostCall{"a": {{"c", "M1", t0 + 5*s, Units{Consumed: 3}}}} // never came to Redis
	d.learn(worldKey, seenAt(10, 3, t0+5*s+s/5), "M1", Units{Refunded: 3})
	// the clock is set back 1 s
	b.learn(worldKey, seenAt(11, 3, t0+4*s+s/2), "M1", Units{Consumed: 1})
	one := placeOf(question{"c", "M1"}, Units{11, 3}, lost, map[string]*memory{"a": a, "b": b, "d": d})
	if one.Found > 0 {
		t.Fatalf("takes out %d units that were admitted: %+v", one.Found, one)
	}
}

// An unplaced charge leaves the ring without a word: its share is not partial.
func TestAForgottenChargeMakesASharePartial(t *testing.T) {
	t.Parallel()
	s := time.Second.Microseconds()
	t0 := 1000 * s
	m := newMemory(1000)
	m.place(worldKey, "M1", t0, t0+20*s, Units{Consumed: 3}, false) // settled, some time in these 20 s
	m.learn(worldKey, seenAt(15, 0, t0+20*s+1), "M1", Units{Consumed: 1})
	got := m.since(worldKey, "M1", t0+19*s)
	if len(got.Unplaced) == 0 && !got.Partial {
		t.Fatalf("3 units this process may have moved after %d are neither told nor is the share partial: %+v", t0+19*s, got)
	}
}

// Two tries of one settlement are lost, the third is told SETTLED.
func TestACallLostTwiceIsOneLoss(t *testing.T) {
	t.Parallel()
	m := newMemory(1000)
	var l losses
	one := func() *loss {
		return &loss{marker: "M1", since: 1, proof: proof{key: "g", number: 1, place: onGuard}, units: []lossUnits{{key: worldKey, Units: Units{Refunded: 3}}}}
	}
	l.add([]*loss{one(), one()})
	p := &part{keys: []string{"g"}, now: 2_000_000, groups: []group{{status: statusSettled, guards: 1, guard: guardAt{key: 0, number: 1}}}}
	l.answered(m, p, "M1")
	got, sum := m.since(worldKey, "M1", 1), int64(0)
	for _, u := range got.Unplaced {
		sum += u.Units.Refunded
	}
	if sum != 3 {
		t.Fatalf("3 units were given back, %d are noted: %+v", sum, got)
	}
}

// More losses than are kept: of no quota is all known then, until Redis is whole
// by another marker.
func TestDroppedLossesLeaveEverythingUnknown(t *testing.T) {
	t.Parallel()
	var l losses
	for i := range lossesKept + 1 {
		if l.dropped.Load() {
			t.Fatalf("dropped one of %d", i)
		}
		l.add([]*loss{{marker: "M1", since: 1, proof: proof{key: fmt.Sprint(i), number: 1, place: onGuard}}})
	}
	if !l.dropped.Load() {
		t.Error("nobody was told")
	}
	if l.over([]int{0}, "M2"); l.dropped.Load() || l.n.Load() != 0 {
		t.Error("what is over is remembered")
	}
}

// What a key holds proves a call by a receipt or guard of its own; a step that
// has gone on may have been anybody's.
func TestProofs(t *testing.T) {
	t.Parallel()
	onReceipt := proof{key: "r", number: 7, place: 1}
	guard, step := proof{key: "g", number: 7, place: onGuard}, proof{key: "s", number: 2, place: onStep, from: 1}
	for _, c := range []struct {
		proof proof
		text  string
		want  verdict
	}{
		{onReceipt, "7:01", shown},
		{onReceipt, "7:10", notShown},
		{onReceipt, "7:0", notShown},
		{onReceipt, "8:01", notShown},
		{onReceipt, "", notShown},
		{guard, "7", shown},
		{guard, "8", shown},
		{guard, "6", notShown},
		{guard, "", notShown},
		{step, "1", notShown},
		{step, "2", shownByAny},
		{step, "9", shownByAny},
		{step, "", shownByAny},
	} {
		if got := c.proof.of(c.text); got != c.want {
			t.Errorf("%+v of %q: %d, want %d", c.proof, c.text, got, c.want)
		}
	}
}

// What is not known of a lost refund is taken for done, once in a restore, and only
// while nobody charges; a key that holds something else stays, and holds up nobody.
func TestPlacingWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := NewRestorer(b.client, "p:")
	p := Process{process: process{slots: []int{0}}, Marker: "run:token"}
	var lost []lostCall
	for _, counter := range []string{"good", "odd", "list"} {
		lost = append(lost, lostCall{Counter: counter, Marker: "before", Units: Units{Refunded: 3}})
	}
	l := lostCallsOf(map[string]account{"gw#1": {Lost: lost}}) // it has heard nobody
	kept := map[string]int64{}
	o := Placing{
		Expires: func(string) time.Time { return time.Time{} },
		Keep:    func(_ context.Context, k Known) error { kept[k.Counter] = k.Consumed; return nil },
	}
	set := func(key, value string) {
		t.Helper()
		if err := b.server.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	set("p:good:c", "10")
	set("p:odd:c", "007")
	if _, err := b.server.Lpush("p:list:c", "x"); err != nil {
		t.Fatal(err)
	}
	place := func(marker string, want error) {
		t.Helper()
		set("p:"+markerKey, marker)
		all, err := r.Place(t.Context(), p, l, o)
		if !errors.Is(err, want) || len(all) != len(lost) {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, one := range all {
			if one.Known || one.Lost.Refunded != 3 {
				t.Errorf("%+v", one)
			}
		}
	}
	place(unsealed+p.Marker, nil)
	place(unsealed+p.Marker, nil)
	place(p.Marker, ErrRestored)
	for key, want := range map[string]string{"p:good:c": "13", "p:odd:c": "007"} {
		if got, err := b.server.Get(key); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", key, got, err, want)
		}
	}
	if list, err := b.server.List("p:list:c"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if kept["good"] != 13 || kept["odd"] != 0 {
		t.Errorf("kept %v", kept)
	}
}
