package membership

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/gateways"
)

type world struct {
	*set
	at time.Time
}

func newWorld(self string) *world {
	w := &world{at: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)}
	w.set = newSet(self, func() time.Time { return w.at })
	return w
}

func (w *world) want(t *testing.T, ids ...string) {
	t.Helper()
	if got := w.live(); !slices.Equal(got, ids) {
		t.Errorf("live %v, want %v", got, ids)
	}
	p := *w.position.Load()
	if p.Live != len(ids) || p.Rank != slices.Index(ids, w.self) {
		t.Errorf("position %+v among %v", p, ids)
	}
}

var born = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func (w *world) beat(ids ...string) {
	for _, id := range ids {
		w.apply(gateways.Beat{ID: id, Started: born, Seq: 1})
	}
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld("b")
	w.want(t, "b")
	w.beat("a", "b", "c")
	w.want(t, "a", "b", "c")
	for range 4 {
		w.at = w.at.Add(gateways.Every)
		w.beat("b", "c")
		w.age()
	}
	w.want(t, "b", "c")
	w.apply(gateways.Beat{ID: "c", Started: born, Leaving: true})
	w.want(t, "b")
	w.beat("c") // under the same id, but this process has left
	w.want(t, "b", "c")
}

// Kafka away is nobody's death, and its return gives everybody time to beat.
func TestSetIsKeptWhileNobodyIsHeard(t *testing.T) {
	t.Parallel()
	w := newWorld("b")
	w.beat("a", "b", "c")
	w.at = w.at.Add(time.Hour)
	w.age()
	w.want(t, "a", "b", "c")
	w.beat("b")
	w.want(t, "a", "b", "c")
	w.at = w.at.Add(gateways.Every)
	w.beat("b", "a")
	for range 3 {
		w.at = w.at.Add(gateways.Every)
		w.beat("b", "a")
	}
	w.want(t, "a", "b")
}

func TestAnEarlierProcessSaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld("b")
	w.apply(gateways.Beat{ID: "a", Started: born.Add(time.Hour), Seq: 1})
	w.apply(gateways.Beat{ID: "a", Started: born, Seq: 99, Leaving: true})
	w.want(t, "a", "b")
}

func TestSharesSumUp(t *testing.T) {
	t.Parallel()
	for live := 1; live <= 7; live++ {
		for n := range int64(30) {
			var sum int64
			var all []int64
			for rank := range live {
				share := Position{live, rank}.Share(n)
				sum, all = sum+share, append(all, share)
			}
			if sum != n || !slices.IsSortedFunc(all, func(a, b int64) int { return int(b - a) }) {
				t.Fatal(fmt.Sprint(live, n, all))
			}
		}
	}
}

// live lists the ids that live, sorted.
func (s *set) live() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []string{s.self}
	for id, m := range s.members {
		if id != s.self && !m.left && s.heard.Sub(m.seen) <= gateways.GoneAfter {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
