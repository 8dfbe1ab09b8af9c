//go:build integration

package indexer

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func TestEveryEventIsADocumentOrADeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refused, old, ahead := event(9001), event(9002), event(9003)
	refused.StatusCode = 70000 // the mapping's short does not take it
	old.TS = old.TS.AddDate(0, 0, -31)
	ahead.TS = ahead.TS.AddDate(60, 0, 0)
	huge := append([]byte(`{"id":"huge","ts":"2020-01-01T00:00:00Z","userId":"`), bytes.Repeat([]byte("x"), 800_000)...)
	huge = append(huge, `"}`...)
	b.produceEvents(0, 150)
	b.produce(encode(t, refused), encode(t, old), encode(t, ahead), []byte("{no json"), huge)
	b.produceEvents(100, 300) // 50 of them again

	s, _ := b.start(b.store)
	b.waitDocuments(300)
	b.waitCommitted()
	got := map[string]string{}
	for _, l := range b.letters(5) {
		got[l.EventID] = l.Reason
		if l.Detail == "" || l.Topic != b.cfg.Topic(usage.Topic) || l.At.IsZero() {
			t.Errorf("letter %+v", l)
		}
		if l.EventID == "huge" && (l.Value != nil || !strings.Contains(l.Detail, "left out")) {
			t.Errorf("letter of a huge event: %.200s, %d bytes", l.Detail, len(l.Value))
		}
		if l.EventID == refused.ID && !bytes.Equal(l.Value, encode(t, refused)) {
			t.Errorf("letter holds %s", l.Value)
		}
	}
	want := map[string]string{refused.ID: deadletters.ReasonRefused, old.ID: deadletters.ReasonLate,
		ahead.ID: deadletters.ReasonLate, "huge": deadletters.ReasonLate, "": deadletters.ReasonUndecodable}
	for id, reason := range want {
		if got[id] != reason {
			t.Errorf("event %q: letter %q, want %q", id, got[id], reason)
		}
	}
	if n := testutil.ToFloat64(s.metrics.documents); n != 350 {
		t.Errorf("documents count %v", n)
	}
	if err := s.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
}

func TestAStoreThatIsAwayHoldsEventsUpAndLosesNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, _ := b.start(b.store)
	b.produceEvents(0, 60)
	b.waitDocuments(60)
	b.waitCommitted()

	b.proxy.Stop()
	bad := event(9001)
	bad.StatusCode = 70000
	b.produceEvents(60, 200)
	b.produce(encode(t, bad))
	servertest.Eventually(t, patience60, "the indexer to say what it waits for", func() bool {
		err := s.Ready()
		return err != nil && strings.Contains(err.Error(), "elasticsearch")
	})
	if b.uncommitted() == 0 {
		t.Fatal("offsets were committed while the store was away")
	}
	if s.lag.seconds(time.Now()) <= 0 {
		t.Fatal("no lag is shown while the store is away")
	}
	if err := b.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	b.waitDocuments(200)
	b.waitCommitted()
	if l := b.letters(1); l[0].EventID != bad.ID {
		t.Fatalf("letter %+v", l[0])
	}
	if err := s.Ready(); err != nil {
		t.Fatalf("ready after the store is back: %v", err)
	}
}

// dying is a store whose process ends right after a Put, before anything of it
// is noted or committed.
type dying struct {
	usagestore.Store
	die context.CancelFunc
	put chan []usage.Event
}

func (d *dying) Put(ctx context.Context, events []usage.Event) ([]usagestore.Result, error) {
	if _, err := d.Store.Put(ctx, events); err != nil {
		return nil, err
	}
	d.put <- slices.Clone(events)
	d.die()
	return nil, context.Canceled
}

func TestAKillBetweenPutAndCommitAddsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.produceEvents(0, 120)
	ctx, cancel := context.WithCancel(t.Context())
	store := &dying{Store: b.store, die: cancel, put: make(chan []usage.Event, 10)}
	s, err := New(DefaultConfig(), Deps{Store: store, Stream: b.cfg})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if first := <-store.put; len(first) == 0 || b.uncommitted() != 120 {
		t.Fatalf("%d events were put, %d offsets are uncommitted", len(first), b.uncommitted())
	}
	b.start(b.store)
	b.waitCommitted()
	b.waitDocuments(120) // which also fails on an event that is there twice
}

func TestOldDaysAreDeletedAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := event(1)
	old.TS = old.TS.AddDate(0, 0, -40)
	if _, err := b.direct.Put(t.Context(), []usage.Event{old, event(2)}); err != nil {
		t.Fatal(err)
	}
	b.waitDocuments(2)
	b.start(b.store)
	b.waitDocuments(1)
}
