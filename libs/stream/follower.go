package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrLost is wrapped by Follower.Run's error when the incarnation of the topic
// that was read is gone, or can no longer be read without a gap. What was read
// cannot be continued; another Follower begins anew.
var ErrLost = errors.New("topic cannot be followed on")

// Follower reads the one partition of a topic, every record in order, from
// the first that exists. It follows a single incarnation of the topic with a
// client of its own: see ErrLost.
type Follower struct {
	cfg    Config
	topic  string
	handle func(*kgo.Record) error
	// stallLimit is how long the position may lag behind the topic's end
	// without moving.
	stallLimit time.Duration
	// needed: see Strict; nil if nothing is.
	needed func() int64
	shed   shedding // watch goroutine only

	position  atomic.Int64 // the next offset to be handled
	target    atomic.Int64 // the end when reading began; -1 before that
	trouble   atomic.Pointer[error]
	lastMoved time.Time // of position; watch goroutine only
	lastSeen  int64
}

// watchEvery is how often the topic's identity and bounds are looked at.
const watchEvery = time.Second

// NewFollower prepares to read topic (its name in the registry). handle is
// called for each record from one goroutine; an error ends Run with it.
func NewFollower(cfg Config, topic string, handle func(*kgo.Record) error) *Follower {
	f := &Follower{cfg: cfg, topic: cfg.Topic(topic), handle: handle, stallLimit: 5 * time.Second}
	f.target.Store(-1)
	return f
}

// Position is the offset after the last record that was handled.
func (f *Follower) Position() int64 { return f.position.Load() }

// CaughtUp reports whether everything has been handled that was in the topic
// when reading began.
func (f *Follower) CaughtUp() bool {
	target := f.target.Load()
	return target >= 0 && f.Position() >= target
}

// Trouble is why the topic cannot be read at this moment, nil if it can. It
// may heal by itself.
func (f *Follower) Trouble() error {
	if err := f.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *Follower) setTrouble(err error) {
	if err == nil {
		f.trouble.Store(nil)
		return
	}
	f.trouble.Store(&err)
}

// Run reads until ctx ends (then it returns nil), the incarnation is lost or
// handle fails. It waits for as long as Kafka is away or the topic is missing.
func (f *Follower) Run(ctx context.Context) error {
	admin, err := newAdmin(f.cfg, f.topic)
	if err != nil {
		return err
	}
	defer admin.close()
	first, err := f.awaitTopic(ctx, admin)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	client, err := kgo.NewClient(append(f.cfg.ClientOptions(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: {0: kgo.NewOffset().At(first.start)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(time.Second),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	f.position.Store(first.start)
	f.target.Store(first.end)

	reading, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { // owned by Run, which waits for it below
		defer close(watched)
		if err := f.watch(reading, admin, first); err != nil {
			stop(err)
		}
	}()
	err = f.poll(reading, client)
	stop(nil)
	<-watched
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitTopic waits until the topic is there. It returns no error when ctx ends.
func (f *Follower) awaitTopic(ctx context.Context, admin *topicAdmin) (bounds, error) {
	ticker := time.NewTicker(watchEvery / 4)
	defer ticker.Stop()
	for {
		b, err := admin.bounds(ctx)
		if err == nil && b.partitions != 1 {
			return bounds{}, fmt.Errorf("topic %s has %d partitions; a table has one", f.topic, b.partitions)
		}
		if err == nil {
			f.setTrouble(nil)
			return b, nil
		}
		f.setTrouble(f.describe(err))
		select {
		case <-ctx.Done():
			return bounds{}, nil
		case <-ticker.C:
		}
	}
}

func (f *Follower) describe(err error) error {
	if errors.Is(err, errNoTopic) {
		return fmt.Errorf("kafka: topic %s does not exist (yet)", f.topic)
	}
	return fmt.Errorf("kafka: %s unreachable: %w", strings.Join(f.cfg.Brokers, ","), err)
}

func (f *Follower) poll(ctx context.Context, client *kgo.Client) error {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("%w: fetch %s: %w", ErrLost, f.topic, e.Err)
		}
		for _, rec := range fetches.Records() {
			if err := f.handle(rec); err != nil {
				return err
			}
			f.position.Store(rec.Offset + 1)
		}
	}
}

// watch notices what a fetch does not tell, or tells only by silence.
func (f *Follower) watch(ctx context.Context, admin *topicAdmin, first bounds) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	f.lastMoved, f.lastSeen = time.Now(), f.Position()
	f.shed = shedding{proven: first.start}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		before := f.Position()
		now, err := admin.bounds(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			f.setTrouble(f.describe(err))
			if errors.Is(err, errNoTopic) {
				return fmt.Errorf("%w: %s was deleted", ErrLost, f.topic)
			}
			f.lastMoved = time.Now() // a stall is counted only while Kafka answers
			continue
		}
		f.setTrouble(nil)
		if err := f.judge(first, now, before); err != nil {
			return err
		}
	}
}

// judge compares what was read before the look (before) with what the look
// found; what is read meanwhile must not count against it.
func (f *Follower) judge(first, now bounds, before int64) error {
	after := f.Position()
	if after != f.lastSeen || after >= now.end {
		f.lastMoved, f.lastSeen = time.Now(), after
	}
	switch {
	case now.id != first.id:
		return fmt.Errorf("%w: %s was deleted and made again", ErrLost, f.topic)
	case now.end < before:
		return fmt.Errorf("%w: %s ends at %d, before %d which was read", ErrLost, f.topic, now.end, before)
	case now.start > after, f.needed != nil && f.shed.lost(now, after, f.needed):
		return fmt.Errorf("%w: records of %s before %d were deleted", ErrLost, f.topic, now.start)
	case time.Since(f.lastMoved) > f.stallLimit:
		return fmt.Errorf("%w: %s stands at %d for %v though it ends at %d", ErrLost, f.topic, after, f.stallLimit, now.end)
	}
	return nil
}
