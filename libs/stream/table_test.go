package stream

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTableIsReadyOnlyByAMirrorRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	table := b.newTable(nil)
	eventually(t, "the empty topic to be read", func() bool {
		err := table.Ready()
		return err != nil && strings.Contains(err.Error(), "no mirror record yet")
	})
	b.put("a", 1, 1, "1")
	b.mirror()
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	if e, ok := table.Get("a"); !ok || e.Value != 1 || e.Version != 1 || e.CommittedAt.IsZero() || e.AppliedAt.IsZero() {
		t.Fatalf("a = %+v, %v", e, ok)
	}
	if age := table.Age(); age > time.Minute {
		t.Fatalf("age is %v right after a mirror record", age)
	}
}

func TestTableDoesNotTakeAnOldMirrorRecordForTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.mirror() // equals the state of then
	b.put("b", 1, 2, "2")
	b.produce(&kgo.Record{Key: []byte("\x00mirror"), Value: []byte(`{"generation":1,"count":7,"digest":"00"}`)})
	sink := &memory{}
	table := b.newTable(sink)
	eventually(t, "a verdict on the last mirror record", func() bool {
		err := table.Ready()
		return err != nil && strings.Contains(err.Error(), "differs from the mirror record")
	})
	b.mirror()
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	if sink.replaced != 1 || table.Len() != 2 {
		t.Fatalf("replaced %d times, %d records", sink.replaced, table.Len())
	}
}

func TestTableFollowsChangesAndIgnoresWhatIsOlder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 5, "5")
	b.mirror()
	sink := &memory{}
	table := b.newTable(sink)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	b.put("a", 1, 4, "4") // a zombie
	b.remove("a", 1, 6)
	b.put("a", 1, 5, "5") // and another, after the deletion
	b.put("b", 1, 7, "7")
	b.mirror()
	eventually(t, "b", func() bool { _, ok := table.Get("b"); return ok })
	if _, ok := table.Get("a"); ok {
		t.Fatal("a late record revived a deleted key")
	}
	b.put("a", 1, 8, "8")
	eventually(t, "a to be created again", func() bool { v, ok := sink.get("a"); return ok && v == 8 })
	b.put("a", 2, 1, "21")
	eventually(t, "the newer generation to win", func() bool { e, _ := table.Get("a"); return e.Value == 21 })
	want := "a b a a" // deleted, b, created again, next generation
	if got := strings.Join(sink.applied, " "); got != want {
		t.Fatalf("sink heard of %q, want %q", got, want)
	}
}

func TestBadRecordCostsOnlyItsKeyAndNotReadiness(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.put("b", 1, 2, "2")
	b.put("a", 1, 3, "not a number")
	b.put("new", 1, 4, "nor is this")
	b.produce(&kgo.Record{Key: []byte("c"), Value: []byte("3")}) // no version
	b.mirror()
	table := b.newTable(nil)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	if e, _ := table.Get("a"); e.Value != 1 || e.Version != 1 {
		t.Fatalf("a = %+v, want its last good value", e)
	}
	if e, _ := table.Get("b"); e.Value != 2 {
		t.Fatalf("b = %+v", e)
	}
	state := table.State()
	if state.Count != 3 || len(state.Bad) != 3 || table.Len() != 2 {
		t.Fatalf("state %+v, %d entries", state, table.Len())
	}
	b.put("a", 1, 9, "9")
	eventually(t, "a to heal", func() bool { e, _ := table.Get("a"); return e.Value == 9 && table.State().Bad["a"] == "" })
}

// A bad record whose key has no good value is stood in for, until it has one; a
// stand-in never takes the place of a good value, in a new copy neither.
func TestStandInsHoldUntilAGoodValueComes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("good", 1, 1, "1")
	b.put("good", 1, 2, "bad -7")
	b.put("new", 1, 3, "bad -8")
	b.put("lost", 1, 4, "beyond help")
	b.mirror()
	sink := &memory{}
	table := b.salvagingTable(sink)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	holds := func(want map[string]int, unread ...string) {
		t.Helper()
		eventually(t, "the sink to hold what the table does", func() bool {
			got := map[string]int{}
			for key, e := range table.Snapshot() {
				if v, ok := sink.get(key); !ok || v != e.Value {
					return false
				}
				got[key] = e.Value
			}
			return maps.Equal(got, want) && slices.Equal(table.State().Unread, unread) && table.Unread() == len(unread)
		})
	}
	holds(map[string]int{"good": 1, "new": -8}, "lost", "new")
	b.put("new", 1, 5, "bad -9")
	b.put("lost", 1, 6, "3")
	holds(map[string]int{"good": 1, "new": -9, "lost": 3}, "new")
	b.put("new", 1, 7, "4")
	b.put("later", 1, 8, "bad -1")
	holds(map[string]int{"good": 1, "new": 4, "lost": 3, "later": -1}, "later")
	b.remove("later", 1, 9)
	holds(map[string]int{"good": 1, "new": 4, "lost": 3})

	// The topic comes again, and only the bad record of good is in it.
	if _, err := b.admin.DeleteTopics(t.Context(), b.cfg.Topic(testTopic)); err != nil {
		t.Fatal(err)
	}
	b.createTopic()
	b.ledger = Ledger{}
	b.put("good", 1, 2, "bad -7")
	b.put("first", 1, 11, "bad -2")
	b.mirror()
	holds(map[string]int{"good": 1, "first": -2}, "first")
}

func TestTopicMadeAgainIsReadAnewWhileTheOldCopyServes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.put("gone", 1, 2, "2")
	b.mirror()
	sink := &memory{}
	table := b.newTable(sink)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	if _, err := b.admin.DeleteTopics(t.Context(), b.cfg.Topic(testTopic)); err != nil {
		t.Fatal(err)
	}
	b.createTopic()
	b.ledger = Ledger{}
	b.put("a", 1, 3, "3")
	eventually(t, "what is newer to be served before the new copy is whole", func() bool { v, _ := sink.get("a"); return v == 3 })
	if _, ok := table.Get("gone"); !ok {
		t.Fatal("the old copy was dropped before the new one was proved")
	}
	b.mirror()
	eventually(t, "the new copy to be swapped in", func() bool { _, ok := sink.get("gone"); return !ok })
	if sink.replaced != 2 || table.Ready() != nil {
		t.Fatalf("replaced %d times, ready: %v", sink.replaced, table.Ready())
	}
}

func TestEmptiedTopicIsReadOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.mirror()
	table := b.newTable(nil)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	b.empty()
	b.put("b", 1, 2, "2")
	b.mirror()
	eventually(t, "b", func() bool { _, ok := table.Get("b"); return ok })
	if _, ok := table.Get("a"); !ok || table.Ready() != nil {
		t.Fatal("a table forgets nothing because the topic does")
	}
}

func TestTableRebuildsWhenMirrorRecordsGoOnDiffering(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.mirror()
	sink := &memory{}
	table := b.newTable(sink)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	// The table alone holds a key that is not in the topic, as after a missed
	// deletion: three mirror records in a row say so.
	table.mu.Lock()
	table.served.ledger.Apply("phantom", 1, 1, []byte("1"))
	table.served.entries["phantom"] = Entry[int]{Value: 1}
	table.mu.Unlock()
	for range mirrorLimit {
		if table.Ready() != nil {
			t.Fatal("a table that was ready stays ready")
		}
		b.mirror()
	}
	eventually(t, "the phantom to go", func() bool { _, ok := table.Get("phantom"); return !ok })
	if e, ok := table.Get("a"); !ok || e.Value != 1 {
		t.Fatalf("a = %+v, %v", e, ok)
	}
}

func TestTableSaysWhyAndServesOnWhenKafkaIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.mirror()
	table := b.newTable(nil)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	b.broker.Close()
	late := b.newTable(nil)
	eventually(t, "the reason", func() bool {
		err := late.Ready()
		return err != nil && strings.Contains(err.Error(), "kafka: ") && strings.Contains(err.Error(), "unreachable")
	})
	eventually(t, "the ready table to tell its trouble", func() bool { return strings.Contains(table.State().Trouble, "unreachable") })
	if _, ok := table.Get("a"); !ok || table.Ready() != nil {
		t.Fatal("what was loaded is served on")
	}
}
