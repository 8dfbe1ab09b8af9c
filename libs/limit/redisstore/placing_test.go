package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lostWorld is a quota that some gateways charge, each with its own memory, and
// what really was charged. Its Redis is lost at the end.
type lostWorld struct {
	t        *rapid.T
	now      int64 // µs of Redis's clock
	totals   Units
	answered int64 // net units of which somebody was told
	receipts int64 // units of those of which a receipt told only
	gates    []*lostGate
	gone     []*lostGate // what they were answered is in events
	late     []func()
}

type lostGate struct {
	name    string
	memory  *memory
	account account
}

const (
	worldKey    = "c" + suffixConsumed
	worldMarker = "run:token"
)

func newLostWorld(t *rapid.T, gates int) *lostWorld {
	w := &lostWorld{t: t, now: time.Hour.Microseconds()}
	for i := range gates {
		w.gates = append(w.gates, &lostGate{name: fmt.Sprint("gw-", i), memory: newMemory(1000), account: account{Peers: map[string]int64{}}})
	}
	return w
}

// charge has one gateway move the quota; it hears of it now, later, or never, or
// the call never came to Redis.
func (w *lostWorld) charge(g *lostGate) {
	units := Units{Consumed: rapid.Int64Range(1, 5).Draw(w.t, "units")}
	if w.totals.Consumed-w.totals.Refunded > 50 && rapid.IntRange(0, 4).Draw(w.t, "refund") == 0 {
		units = Units{Refunded: units.Consumed}
	}
	sent := w.now
	w.now += rapid.Int64Range(0, 30_000).Draw(w.t, "µs")
	end := rapid.SampledFrom([]string{"answered", "answered", "answered", "late", "receipt", "lost", "never"}).Draw(w.t, "end")
	if end == "never" {
		g.lose(sent, units)
		return
	}
	w.totals = w.totals.Plus(units)
	t := seen{consumed: w.totals.Consumed, refunded: w.totals.Refunded, at: w.now}
	switch end {
	case "answered":
		g.memory.learn(worldKey, t, worldMarker, units)
	case "late":
		w.late = append(w.late, func() { g.memory.learn(worldKey, t, worldMarker, units) })
	case "receipt":
		g.memory.place(worldKey, worldMarker, sent, w.now+1, units, false)
		g.memory.learn(worldKey, t, worldMarker, Units{}) // it is read with the totals
		w.receipts += units.Consumed + units.Refunded
	case "lost":
		g.lose(sent, units)
		return
	}
	w.answered += units.Consumed - units.Refunded
}

func (g *lostGate) lose(sent int64, units Units) {
	g.account.Lost = append(g.account.Lost, lostCall{"c", worldMarker, sent, units})
}

// look has a gateway learn the totals without a charge.
func (w *lostWorld) look(g *lostGate) {
	w.now++
	g.memory.learn(worldKey, seen{consumed: w.totals.Consumed, refunded: w.totals.Refunded, at: w.now}, worldMarker, Units{})
}

func (w *lostWorld) catchUp() {
	for len(w.late) > 0 {
		i := rapid.IntRange(0, len(w.late)-1).Draw(w.t, "late")
		w.late[i]()
		w.late = append(w.late[:i], w.late[i+1:]...)
	}
}

// restore raises the quota to what somebody has seen, and asks for lost calls.
func (w *lostWorld) restore() (restored Units, one Placed) {
	w.catchUp()
	accounts := map[string]account{}
	for _, g := range slices.Concat(w.gates, w.gone) {
		known := g.memory.known(worldKey)
		restored = restored.max(Units{known.consumed, known.refunded})
	}
	for _, g := range w.gates {
		accounts[accountOf(g.name, "1")] = g.account
	}
	since, all := questions(accounts), slices.Sorted(maps.Keys(accounts))
	for _, g := range w.gates {
		a := accounts[accountOf(g.name, "1")]
		a.Heard, a.Shares = all, map[string]share{}
		for q, at := range since {
			a.Shares[q.String()] = g.memory.since(worldKey, q.marker, at)
		}
		accounts[accountOf(g.name, "1")] = a
	}
	return restored, lostCallsOf(accounts).place(question{"c", worldMarker}, restored)
}

// What lost calls charged, and others saw, is found to the unit: whoever they
// were of, in whatever order the rest was heard of, and with others beside them
// that never came. Where a receipt told of some, and not of their place, the quota
// is never too low, and too high by no more than theirs.
func TestLostCallsAreFoundToTheUnit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newLostWorld(t, rapid.IntRange(1, 4).Draw(t, "gateways"))
		w.totals = Units{Consumed: 1000}
		for _, g := range w.gates {
			w.look(g)
		}
		w.answered = w.totals.Consumed
		w.now += 2 * leftFor.Microseconds()
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		for range steps {
			w.charge(w.gates[rapid.IntRange(0, len(w.gates)-1).Draw(t, "gateway")])
			if rapid.Bool().Draw(t, "look") {
				w.look(w.gates[0])
			}
		}
		for _, g := range w.gates {
			w.look(g) // so that what the last ones charged is seen, too
		}
		restored, one := w.restore()
		if one.Lost == (Units{}) {
			return // nobody asks
		}
		used := restored.Consumed - restored.Refunded - one.Found
		if !one.Known || used < w.answered || used > w.answered+w.receipts {
			t.Fatalf("%d used after %+v of %+v, %d were answered", used, one, restored, w.answered)
		}
	})
}

// comeAndGo changes who is there: somebody new, somebody who leaves, somebody
// who dies and is started again under his name. Those that stay see it.
func (w *lostWorld) comeAndGo() {
	i := rapid.IntRange(0, len(w.gates)-1).Draw(w.t, "who")
	w.meet()
	fresh := func(name string) *lostGate {
		return &lostGate{name: name, memory: newMemory(1000), account: account{Began: w.now, PeersSince: w.now, Peers: map[string]int64{}}}
	}
	switch rapid.SampledFrom([]string{"come", "leave", "restart"}).Draw(w.t, "change") {
	case "come":
		w.gates = append(w.gates, fresh(fmt.Sprint("gw-", w.now)))
	case "leave":
		if len(w.gates) > 1 {
			w.gone = append(w.gone, w.gates[i])
			w.gates = slices.Delete(w.gates, i, i+1)
		}
	case "restart":
		w.gone = append(w.gone, w.gates[i])
		w.gates[i] = fresh(w.gates[i].name)
	}
	w.now += rapid.Int64Range(1, 10_000_000).Draw(w.t, "pause")
	w.meet()
}

// meet has those that are there see each other.
func (w *lostWorld) meet() {
	for _, g := range w.gates {
		for _, other := range w.gates {
			g.account.Peers[other.name] = w.now
		}
	}
}

// However gateways come, leave, die and are started again, and however little
// they have seen of a quota, no unit of it is given away.
func TestLostCallsGiveNothingAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newLostWorld(t, rapid.IntRange(1, 3).Draw(t, "gateways"))
		w.totals = Units{Consumed: 1000} // of which nobody here may have heard
		w.look(w.gates[0])
		w.answered = 1000
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				w.catchUp() // who dies has heard what he was told
				w.comeAndGo()
			}
			w.charge(w.gates[rapid.IntRange(0, len(w.gates)-1).Draw(t, "gateway")])
		}
		restored, one := w.restore()
		used := restored.Consumed - restored.Refunded - one.Found
		// What was to be given back and was lost is given back once more. Who is
		// gone cannot ask what became of his.
		lost := int64(0)
		for _, g := range w.gone {
			for _, c := range g.account.Lost {
				lost += c.Units.Refunded
			}
		}
		if used < w.answered-lost || !one.Known && one.Found > 0 {
			t.Fatalf("%d used after %+v of %+v, %d were answered", used, one, restored, w.answered)
		}
	})
}
