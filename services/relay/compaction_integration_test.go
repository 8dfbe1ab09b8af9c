//go:build integration

package relay

import (
	"net"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
)

// The broker of development moves a topic's first offset when it compacts,
// which Kafka does not: nothing is lost, and the session goes on.
func TestCompactionEndsNoSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker := openBroker(t, 0, dir)
	b := newBenchOn(t, servertest.Postgres(t), broker.ListenAddrs(), uniqueSlot(t)+".")
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	b.put("b", 1)
	table := b.table()
	b.equal("before", table)
	for round := range 2 {
		b.compacts(broker, relay, table, round+2)
	}
	if got := testutil.ToFloat64(relay.metrics.sessions); got != 1 {
		t.Fatalf("%v sessions, want 1", got)
	}

	relay.stop()
	port := portOf(t, broker)
	broker.Close()
	broker = openBroker(t, port, dir)
	again := b.relay()
	b.streaming(again)
	b.compacts(broker, again, b.table(), 9)
	b.equal("the table from before", table)
	if got := testutil.ToFloat64(again.metrics.sessions); got != 1 {
		t.Fatalf("%v sessions after a restart, want 1", got)
	}
	if got := testutil.ToFloat64(again.metrics.differences.WithLabelValues(things)); got != 0 {
		t.Fatalf("%v differences after a restart, want none", got)
	}
}

func openBroker(t *testing.T, port int, dir string) *kfake.Cluster {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.Ports(port), kfake.DataDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker
}

func portOf(t *testing.T, broker *kfake.Cluster) int {
	t.Helper()
	_, text, err := net.SplitHostPort(broker.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// compacts lets the broker compact once each key has a newer record, and waits
// for longer than a follower takes to look at the topic's bounds twice.
func (b *bench) compacts(broker *kfake.Cluster, relay *relayRun, table *stream.Table[string], n int) {
	b.t.Helper()
	b.put("a", n)
	b.put("b", n)
	b.equal("before compaction", table)
	before, end := b.bounds()
	b.eventually("two mirror records, of which the first may go", func() bool { _, now := b.bounds(); return now >= end+2 })
	broker.Compact()
	start, end := b.bounds()
	if start <= before {
		b.t.Fatalf("compaction left the first offset at %d (was %d, end %d)", start, before, end)
	}
	const records = 15 // five a second
	b.eventually("mirror records after compaction", func() bool { _, now := b.bounds(); return now >= end+records })
	b.streaming(relay)
	b.equal("after compaction", table)
}

func (b *bench) bounds() (start, end int64) {
	b.t.Helper()
	name := b.stream.Topic(things)
	starts, err := b.admin.ListStartOffsets(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	ends, err := b.admin.ListEndOffsets(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	first, _ := starts.Lookup(name, 0)
	last, _ := ends.Lookup(name, 0)
	return first.Offset, last.Offset
}
