//go:build integration

package membership

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
)

const patience = 30 * time.Second

// run starts a member and returns it with what stops it in good order.
func run(t *testing.T, cfg stream.Config, id string) (*Membership, func()) {
	t.Helper()
	f, err := New(Options{Stream: cfg, ID: id, Every: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return f, stop
}

func until(t *testing.T, f *Membership, ids ...string) {
	t.Helper()
	servertest.Eventually(t, patience, "the members to be known", func() bool { return slices.Equal(f.set.live(), ids) })
	if p := f.Position(); p.Live != len(ids) {
		t.Errorf("position %+v of %v", p, ids)
	}
}

func TestMembersHearEachOther(t *testing.T) {
	t.Parallel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	cfg := stream.Config{Brokers: broker.ListenAddrs(), TopicPrefix: "p."}
	a, _ := run(t, cfg, "a") // before the topic is there
	topics := []events.Topic{{Name: gateways.Topic, Partitions: 1, Retention: time.Hour}}
	if err := stream.EnsureTopics(t.Context(), cfg, topics, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	b, stopB := run(t, cfg, "b")
	until(t, a, "a", "b")
	until(t, b, "a", "b")
	if a.Position().Rank != 0 || b.Position().Rank != 1 {
		t.Errorf("positions %+v, %+v", a.Position(), b.Position())
	}
	stopB()
	until(t, a, "a")
}
