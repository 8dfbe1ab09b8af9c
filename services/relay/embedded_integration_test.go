//go:build integration

package relay

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// The broker in this process, which development uses, carries as Kafka does.
func TestRelayOnTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	b := newBenchOn(t, servertest.Postgres(t), broker.ListenAddrs(), uniqueSlot(t)+".")
	relay := b.relay()
	b.streaming(relay)
	table := b.table()
	for n := range 20 {
		b.put("a", n)
		b.put("b", n)
	}
	b.remove("a")
	b.equal("after writing", table)
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
	b.empty()
	b.put("c", 1)
	b.equal("emptied", b.table())
	if _, err := b.admin.DeleteTopics(t.Context(), b.stream.Topic(things)); err != nil {
		t.Fatal(err)
	}
	b.remove("b")
	b.equal("made again", b.table())
	b.equal("the table from before", table)
}
