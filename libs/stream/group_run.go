package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// Times of a membership.
const (
	// sessionTimeout is how long a member that was killed, or cut off, keeps its
	// partitions from the others, and from its own next start: nobody settles or
	// indexes them meanwhile. The library's 45 s are for members whose rebalances
	// are dear. Here one that only slept for so long is called lost, and what it
	// had not committed is done twice, which changes nothing. Brokers refuse less
	// than 6 s by default.
	sessionTimeout = 10 * time.Second
	// heartbeatEvery leaves room for two that are lost. It is apart from handling:
	// a slow batch does not end a membership.
	heartbeatEvery = 3 * time.Second
	// rebalanceTimeout is what members have to come to a rebalance: the batch under
	// way, and leaveLimit for what was handled.
	rebalanceTimeout = 30 * time.Second
)

// leaveLimit bounds what is done for partitions that are given up, so that a
// rebalance is not held up by a Kafka or a store that hangs.
const leaveLimit = 10 * time.Second

// errTopicAnew: the client library does not adopt a topic that was deleted and
// made again; a new client does.
var errTopicAnew = errors.New("topic was deleted and made again")

// Run joins the group and handles its partitions until ctx ends; then it
// leaves the group and returns nil. It does not end because Kafka is away.
func (g *Group) Run(ctx context.Context) error {
	pause := backoff.Backoff{}
	for {
		err := g.member(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, errTopicAnew) {
			return err
		}
		g.o.Log.Error("topic was deleted and made again; what was in it is gone", "group", g.o.Group, "topic", g.cfg.Topic(g.o.Topic))
		if pause.Wait(ctx) != nil {
			return nil
		}
	}
}

// member is one membership, from joining to leaving.
func (g *Group) member(ctx context.Context) error {
	client, err := kgo.NewClient(append(g.options(),
		kgo.OnPartitionsAssigned(g.assigned),
		kgo.OnPartitionsRevoked(g.revoked),
		kgo.OnPartitionsLost(g.lost),
	)...)
	if err != nil {
		return fmt.Errorf("group %s: kafka client: %w", g.o.Group, err)
	}
	g.setClient(client)
	defer func() {
		client.CloseAllowingRebalance() // calls revoked, which commits
		g.setClient(nil)
	}()
	failing := backoff.Backoff{}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, g.o.MaxBatch)
		if ctx.Err() != nil {
			break
		}
		err := g.noteErrors(fetches)
		if errors.Is(err, errTopicAnew) {
			return err
		}
		records := fetches.Records()
		if len(records) > 0 {
			g.handleBatch(ctx, client, records)
			failing.Reset()
		}
		client.AllowRebalance()
		if err != nil && len(records) == 0 {
			_ = failing.Wait(ctx) // the same error comes again at once
		}
	}
	return nil
}

// options are those of a member's client.
func (g *Group) options() []kgo.Opt {
	return append(g.cfg.ClientOptions(),
		kgo.ConsumerGroup(g.cfg.Topic(g.o.Group)),
		kgo.ConsumeTopics(g.cfg.Topic(g.o.Topic)),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(heartbeatEvery),
		kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(time.Second),
	)
}

// handleBatch repeats the batch until it is handled. While it waits to try
// again the group may rebalance; records of partitions that are gone by then
// belong to another member and are dropped here.
func (g *Group) handleBatch(ctx context.Context, client *kgo.Client, records []*kgo.Record) {
	pause := backoff.Backoff{}
	g.mu.Lock()
	clear(g.gone)
	g.mu.Unlock()
	for {
		err := g.attempt(ctx, records)
		if err == nil || ctx.Err() != nil {
			return
		}
		g.metrics.retries.WithLabelValues(g.o.Topic).Inc()
		g.o.Log.Warn("batch failed and is tried again", "group", g.o.Group, "topic", g.o.Topic, "records", len(records), "error", err)
		client.AllowRebalance()
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

func (g *Group) attempt(ctx context.Context, records []*kgo.Record) error {
	g.handling.Lock()
	defer g.handling.Unlock()
	batch, kept := g.mine(records)
	if len(batch) == 0 {
		return nil
	}
	if err := g.o.Handle(ctx, batch); err != nil {
		return err
	}
	g.mu.Lock()
	for _, r := range kept {
		g.handled[r.Partition] = r
	}
	g.mu.Unlock()
	g.metrics.batches.WithLabelValues(g.o.Topic).Inc()
	if g.o.ManualCommit {
		return nil
	}
	if err := g.Commit(ctx); err != nil && ctx.Err() == nil {
		// Handled all the same: the next commit covers it, a restart repeats it.
		g.o.Log.Warn("offsets are not committed yet", "group", g.o.Group, "error", err)
	}
	return nil
}

// mine are the records whose partitions have not been given up since the poll.
func (g *Group) mine(records []*kgo.Record) (batch []Record, kept []*kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		if g.gone[r.Partition] {
			continue
		}
		kept = append(kept, r)
		batch = append(batch, Record{Key: r.Key, Value: r.Value, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Headers: r.Headers})
	}
	return batch, kept
}

// noteErrors reports what cannot be read, and returns one of the errors.
func (g *Group) noteErrors(fetches kgo.Fetches) (last error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		switch {
		case errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed):
			return
		case errors.Is(err, kerr.UnknownTopicID):
			last = errTopicAnew
			return
		case errors.Is(err, kerr.OffsetOutOfRange) || isDataLoss(err):
			g.metrics.outOfRange.WithLabelValues(g.o.Topic).Inc()
			g.mu.Lock()
			g.broken[partition] = err
			g.mu.Unlock()
			err = fmt.Errorf("%w: %w", ErrLostPosition, err)
		}
		if last == nil {
			last = err
		}
		g.o.Log.Error("partition cannot be read", "group", g.o.Group, "topic", topic, "partition", partition, "error", err)
	})
	return last
}

func isDataLoss(err error) bool {
	var loss *kgo.ErrDataLoss
	return errors.As(err, &loss)
}

func (g *Group) setClient(c *kgo.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client = c
	if c == nil {
		g.joined = false
	}
}

func (g *Group) assigned(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	partitions := topics[g.cfg.Topic(g.o.Topic)]
	g.mu.Lock()
	g.joined = true
	g.mu.Unlock()
	if g.o.OnAssigned != nil && len(partitions) > 0 {
		g.o.OnAssigned(partitions)
	}
}

func (g *Group) revoked(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	g.handling.Lock()
	defer g.handling.Unlock()
	partitions := topics[g.cfg.Topic(g.o.Topic)]
	if len(partitions) == 0 {
		return
	}
	// Run's context may have ended already; what was handled is still worth keeping.
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	if err := g.settle(ctx); err != nil {
		g.o.Log.Warn("partitions are given up with uncommitted work, which their next owner repeats", "group", g.o.Group, "partitions", partitions, "error", err)
	}
	g.forget(partitions)
}

// settle commits what was handled: at once, or after the owner of the commits
// has made it durable.
func (g *Group) settle(ctx context.Context) error {
	if g.o.ManualCommit {
		if g.o.BeforeRevoke == nil {
			return nil
		}
		if err := g.o.BeforeRevoke(ctx); err != nil {
			return err
		}
	}
	return g.Commit(ctx)
}

// lost is revoked without the right to commit any more.
func (g *Group) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	g.handling.Lock()
	defer g.handling.Unlock()
	g.forget(topics[g.cfg.Topic(g.o.Topic)])
}

func (g *Group) forget(partitions []int32) {
	g.mu.Lock()
	for _, p := range partitions {
		delete(g.handled, p)
		delete(g.broken, p)
		g.gone[p] = true
	}
	g.mu.Unlock()
	if g.o.OnRevoked != nil && len(partitions) > 0 {
		g.o.OnRevoked(partitions)
	}
}
