package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/schemas/events"
)

const (
	flowTopic  = "flow.v1"
	flowGroup  = "readers"
	partitions = 4
)

// flow is a topic of several partitions that groups read.
type flow struct {
	t     testing.TB
	cfg   Config
	kafka *kgo.Client
	admin *kadm.Client
}

func newFakeFlow(t testing.TB) *flow {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return newFlow(t, broker.ListenAddrs(), "p.")
}

func newFlow(t testing.TB, brokers []string, prefix string) *flow {
	t.Helper()
	f := &flow{t: t, cfg: Config{Brokers: brokers, TopicPrefix: prefix}}
	topics := []events.Topic{{Name: flowTopic, Partitions: partitions, Retention: time.Hour}}
	if err := EnsureTopics(t.Context(), f.cfg, topics, testLog(t)); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(f.cfg.ClientOptions(), kgo.ProducerLinger(0))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f.kafka, f.admin = client, kadm.NewClient(client)
	return f
}

func (f *flow) produce(from, to int) {
	f.t.Helper()
	if err := f.tryProduce(from, to); err != nil {
		f.t.Fatal(err)
	}
}

func (f *flow) tryProduce(from, to int) error {
	var records []*kgo.Record
	for n := from; n < to; n++ {
		records = append(records, &kgo.Record{Topic: f.cfg.Topic(flowTopic), Key: fmt.Appendf(nil, "k%d", n%13), Value: fmt.Appendf(nil, "%d", n)})
	}
	return f.kafka.ProduceSync(f.t.Context(), records...).FirstErr()
}

// committed is the sum of the group's committed offsets.
func (f *flow) committed() (sum int64) {
	f.t.Helper()
	offsets, err := f.admin.FetchOffsets(f.t.Context(), f.cfg.Topic(flowGroup))
	if err != nil {
		f.t.Fatal(err)
	}
	offsets.Each(func(o kadm.OffsetResponse) { sum += max(0, o.At) })
	return sum
}

// reader is a member that remembers how often it saw each value.
type reader struct {
	mu       sync.Mutex
	seen     map[string]int
	assigned map[int32]bool
	fail     error
	failures int
}

func (r *reader) handle(_ context.Context, batch []Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		r.failures++
		return r.fail
	}
	for _, rec := range batch {
		r.seen[string(rec.Value)]++
	}
	return nil
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *reader) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.assigned)
}

func (r *reader) setFail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// join starts a member; stop ends it and waits.
func (f *flow) join(change func(*GroupOptions)) (*Group, *reader, func()) {
	f.t.Helper()
	r := &reader{seen: map[string]int{}, assigned: map[int32]bool{}}
	o := GroupOptions{Group: flowGroup, Topic: flowTopic, Handle: r.handle, Log: testLog(f.t), MaxBatch: 50,
		OnAssigned: func(ps []int32) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, p := range ps {
				r.assigned[p] = true
			}
		},
		OnRevoked: func(ps []int32) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, p := range ps {
				delete(r.assigned, p)
			}
		},
	}
	change(&o)
	g, err := NewGroup(f.cfg, o)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("group: %v", err)
		}
	})
	f.t.Cleanup(stop)
	return g, r, stop
}

func plain(*GroupOptions) {}

func TestFreshGroupStartsAtTheEarliestAndContinuesWhereItStopped(t *testing.T) {
	t.Parallel()
	groupContinues(t, newFakeFlow(t))
}

func groupContinues(t *testing.T, f *flow) {
	f.produce(0, 200)
	g, first, stop := f.join(plain)
	eventually(t, "all records of before the group", func() bool { return first.count() == 200 })
	if err := g.Ready(); err != nil {
		t.Fatal(err)
	}
	stop()
	if got := f.committed(); got != 200 {
		t.Fatalf("committed %d of 200", got)
	}
	f.produce(200, 300)
	_, second, _ := f.join(plain)
	eventually(t, "the rest", func() bool { return second.count() == 100 })
	if second.seen["0"] != 0 {
		t.Fatal("a committed record came again")
	}
}

func TestGroupWaitsForATopicThatIsMadeLater(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	groupAwaitsTopic(t, f)
}

func groupAwaitsTopic(t *testing.T, f *flow) {
	_, r, _ := f.join(plain)
	groupAwaitsTopicWith(t, f, r, 0)
}

// groupAwaitsTopicWith deletes the topic, makes it again and expects r, which
// has read before records, to read the new ones.
func groupAwaitsTopicWith(t *testing.T, f *flow, r *reader, before int) {
	if _, err := f.admin.DeleteTopics(t.Context(), f.cfg.Topic(flowTopic)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be made", func() bool {
		_, err := f.admin.CreateTopic(t.Context(), partitions, 1, nil, f.cfg.Topic(flowTopic))
		return err == nil
	})
	// Each try by a client that never saw the deleted topic; the broker itself
	// may know the old id for a moment longer.
	eventually(t, "the new topic to take records", func() bool {
		client, err := kgo.NewClient(f.cfg.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		f.kafka = client
		return f.tryProduce(before, before+50) == nil
	})
	eventually(t, "the records", func() bool { return r.count() == before+50 })
}

func TestGroupReadsATopicThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	groupReadsAnew(t, newFakeFlow(t))
}

func groupReadsAnew(t *testing.T, f *flow) {
	_, r, _ := f.join(plain)
	f.produce(0, 50)
	eventually(t, "the records", func() bool { return r.count() == 50 && f.committed() == 50 })
	groupAwaitsTopicWith(t, f, r, 50)
}

func TestFailedBatchComesAgainAndIsNotCommittedBefore(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	_, r, _ := f.join(plain)
	r.setFail(errors.New("store is away"))
	f.produce(0, 100)
	eventually(t, "several attempts", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.failures >= 3 })
	if got := f.committed(); got != 0 {
		t.Fatalf("committed %d records that were not handled", got)
	}
	r.setFail(nil)
	eventually(t, "every record, once the store is back", func() bool { return r.count() == 100 })
	eventually(t, "the commit", func() bool { return f.committed() == 100 })
}

func TestMembersShareAndPassOnWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	groupShares(t, newFakeFlow(t))
}

func groupShares(t *testing.T, f *flow) {
	_, first, _ := f.join(plain)
	f.produce(0, 100)
	eventually(t, "the first member to read", func() bool { return first.count() == 100 })
	_, second, stopSecond := f.join(plain)
	eventually(t, "the partitions to be shared", func() bool { return first.holds() == 2 && second.holds() == 2 })
	f.produce(100, 300)
	eventually(t, "both to read", func() bool { return first.count()+second.count() == 300 })
	stopSecond()
	eventually(t, "the first to have all partitions again", func() bool { return first.holds() == partitions })
	f.produce(300, 400)
	eventually(t, "the first to read all", func() bool { return first.count()+second.count() == 400 })
	for value, n := range first.seen {
		if n+second.seen[value] != 1 {
			t.Fatalf("record %s was handled %d times though every hand-over was orderly", value, n+second.seen[value])
		}
	}
}

func TestBatchThatIsTriedAgainLeavesOutPartitionsThatAreGone(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	_, first, _ := f.join(func(o *GroupOptions) { o.MaxBatch = 1000 })
	eventually(t, "the first member to have all", func() bool { return first.holds() == partitions })
	first.setFail(errors.New("store is away"))
	f.produce(0, 100)
	eventually(t, "a failed attempt", func() bool { first.mu.Lock(); defer first.mu.Unlock(); return first.failures >= 1 })
	_, second, _ := f.join(plain)
	eventually(t, "the partitions to be shared though a batch is failing", func() bool { return first.holds() == 2 && second.holds() == 2 })
	eventually(t, "the second to read its part", func() bool { return second.count() > 0 })
	first.setFail(nil)
	eventually(t, "every record", func() bool { return first.count()+second.count() >= 100 })
	eventually(t, "every commit", func() bool { return f.committed() == 100 })
	for value := range first.seen {
		if second.seen[value] != 0 {
			t.Fatalf("record %s was handled by both members", value)
		}
	}
}

func TestManualCommitCoversOnlyThePositionThatWasTaken(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	g, r, stop := f.join(func(o *GroupOptions) { o.ManualCommit = true })
	f.produce(0, 100)
	eventually(t, "the records", func() bool { return r.count() == 100 })
	position := g.Handled()
	f.produce(100, 150)
	eventually(t, "more records", func() bool { return r.count() == 150 })
	if got := f.committed(); got != 0 {
		t.Fatalf("committed %d without being told", got)
	}
	if err := g.CommitTo(t.Context(), position); err != nil {
		t.Fatal(err)
	}
	if got := f.committed(); got != 100 {
		t.Fatalf("committed %d, want the 100 of the position", got)
	}
	stop()
	if got := f.committed(); got != 100 {
		t.Fatalf("leaving committed %d, want 100: nobody said the rest is durable", got)
	}
}

func TestBeforeRevokeMakesWorkDurableWhenPartitionsGo(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	calls := 0
	_, r, stop := f.join(func(o *GroupOptions) {
		o.ManualCommit = true
		o.BeforeRevoke = func(context.Context) error { calls++; return nil }
	})
	f.produce(0, 100)
	eventually(t, "the records", func() bool { return r.count() == 100 })
	stop()
	if got := f.committed(); got != 100 || calls == 0 {
		t.Fatalf("committed %d after %d calls", got, calls)
	}
}

func TestLostPositionIsReportedAndNeverSkipped(t *testing.T) {
	t.Parallel()
	f := newFakeFlow(t)
	f.produce(0, 200)
	_, r, stop := f.join(plain)
	eventually(t, "the records", func() bool { return r.count() == 200 })
	stop()
	// The records at the committed offsets and the next are deleted unread.
	f.produce(200, 400)
	ends, err := f.admin.ListEndOffsets(t.Context(), f.cfg.Topic(flowTopic))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := f.admin.DeleteRecords(t.Context(), ends.Offsets())
	if err != nil || answers.Error() != nil {
		t.Fatal(err, answers.Error())
	}
	f.produce(400, 500)
	g, late, _ := f.join(plain)
	eventually(t, "the loss to be reported", func() bool {
		err := g.Ready()
		return errors.Is(err, ErrLostPosition)
	})
	if late.count() != 0 {
		t.Fatalf("%d records were read past the gap", late.count())
	}
}

func TestGroupSaysThatItIsNotAMemberYet(t *testing.T) {
	t.Parallel()
	g, err := NewGroup(Config{Brokers: []string{"127.0.0.1:1"}}, GroupOptions{Group: "g", Topic: "t", Handle: func(context.Context, []Record) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, g.Run)
	if err := g.Ready(); err == nil || !strings.Contains(err.Error(), "kafka: not a member") {
		t.Fatalf("Ready = %v", err)
	}
}
