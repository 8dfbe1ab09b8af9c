package stream

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// strictReader is a strict follower that needs the newest record of each key.
type strictReader struct {
	*Follower
	mu     sync.Mutex
	newest map[string]int64
	asked  int // how often it was asked what it needs
	ended  chan error
}

func (b *bench) readStrictly() *strictReader {
	b.t.Helper()
	r := &strictReader{newest: map[string]int64{}, ended: make(chan error, 1)}
	r.Follower = NewFollower(b.cfg, testTopic, func(rec *kgo.Record) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.newest[string(rec.Key)] = rec.Offset
		return nil
	}).Strict(r.lowest)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- r.Run(ctx)
	}()
	b.t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *strictReader) lowest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	lowest := int64(math.MaxInt64)
	for _, offset := range r.newest {
		lowest = min(lowest, offset)
	}
	return lowest
}

func (r *strictReader) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// follows waits until all has been read and the last move was judged.
func (b *bench) follows(r *strictReader, end int64, questions int) {
	b.t.Helper()
	eventually(b.t, "the move of the first offset to be judged", func() bool {
		select {
		case err := <-r.ended:
			b.t.Fatalf("ended: %v", err)
		default:
		}
		return r.Position() == end && r.questions() == questions
	})
}

func (b *bench) start() int64 {
	b.t.Helper()
	starts, err := b.admin.ListStartOffsets(b.t.Context(), b.cfg.Topic(testTopic))
	if err != nil {
		b.t.Fatal(err)
	}
	start, _ := starts.Lookup(b.cfg.Topic(testTopic), 0)
	return start.Offset
}

func TestStrictFollowerReadsOnPastCompaction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	r := b.readStrictly()
	for round := range int64(2) {
		b.put("a", 1, 2*round+2, "2")
		b.put("a", 1, 2*round+3, "3") // a broker leaves its newest batch alone
		// What is taken away before it was read is lost; this is about the rest.
		eventually(t, "all to be read", func() bool { return r.Position() == 2*round+3 })
		b.broker.Compact()
		if got, want := b.start(), 2*round+1; got != want {
			t.Fatalf("the compacted topic begins at %d, want %d", got, want)
		}
		b.follows(r, 2*round+3, int(round)+1)
	}
}

func TestStrictFollowerMissesOnlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a", 1, 1, "1")
	b.put("b", 1, 2, "1")
	b.put("a", 1, 3, "2")
	r := b.readStrictly()
	eventually(t, "all to be read", func() bool { return r.Position() == 3 })
	b.deleteBefore(1) // a's older record
	b.follows(r, 3, 1)
	b.deleteBefore(2) // all there is of b
	eventually(t, "the loss to be noticed", func() bool { return len(r.ended) == 1 })
	if err := <-r.ended; !errors.Is(err, ErrLost) {
		t.Fatalf("ended with %v", err)
	}
}

// deleteBefore is DeleteRecords; the broker of these tests allows it always.
func (b *bench) deleteBefore(offset int64) {
	b.t.Helper()
	to := kadm.Offsets{}
	to.AddOffset(b.cfg.Topic(testTopic), 0, offset, -1)
	answers, err := b.admin.DeleteRecords(b.t.Context(), to)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// What replaces a compacted record may be yet unread when the topic is seen to
// begin later.
func TestSheddingIsJudgedOnceAllIsRead(t *testing.T) {
	t.Parallel()
	needed := int64(3) // the newest record of the key that was read
	ask := func() int64 { return needed }
	s := shedding{proven: 0}
	look := bounds{start: 5, end: 8}
	if s.lost(look, 7, ask) {
		t.Fatal("judged before the record at 7 was read")
	}
	needed = 7
	if s.lost(bounds{start: 6, end: 9}, 8, ask) {
		t.Fatal("the record at 7 is there")
	}
	if s.proven != 5 {
		t.Fatalf("proven up to %d, want the 5 of the look that was judged", s.proven)
	}
	if !s.lost(bounds{start: 8, end: 9}, 9, ask) {
		t.Fatal("the record at 7 is gone")
	}
}
