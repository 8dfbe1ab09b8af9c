package relay

import (
	"context"
	"encoding/json"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

// tail reads a compacted topic as its consumers do, so that the relay knows
// what they hold and notices what it did not write itself.
type tail struct {
	topic    events.Topic
	instance string
	metrics  *metrics
	follower *stream.Follower
	// surprised gets a token when the topic is not what it should be.
	surprised chan<- struct{}

	mu     sync.Mutex
	ledger stream.Ledger
	// dirty are keys whose last record in the topic is not their newest:
	// compaction would keep the wrong one, so the newest is published again.
	dirty map[string]bool
	// home is where in the topic the newest record of each live key lies.
	home   map[string]int64
	mirror events.Mirror // the newest, zero before the first
}

func newTail(cfg stream.Config, topic events.Topic, instance string, m *metrics, surprised chan<- struct{}) *tail {
	t := &tail{topic: topic, instance: instance, metrics: m, surprised: surprised, dirty: map[string]bool{}, home: map[string]int64{}}
	t.follower = stream.NewFollower(cfg, topic.Name, t.handle).Strict(t.needed)
	return t
}

func (t *tail) run(ctx context.Context) error { return t.follower.Run(ctx) }

func (t *tail) handle(rec *kgo.Record) error {
	key := string(rec.Key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if key == events.MirrorKey {
		t.handleMirror(rec.Value)
		return nil
	}
	stamp, err := stream.ParseStamp(rec.Headers)
	outcome := stream.Stale
	if err == nil {
		outcome = t.ledger.Apply(key, stamp.Generation, stamp.Version, rec.Value)
	}
	if outcome != stream.Stale {
		delete(t.dirty, key)
		if delete(t.home, key); rec.Value != nil {
			t.home[key] = rec.Offset
		}
		return nil
	}
	t.dirty[key] = true
	t.surprise()
	return nil
}

// needed is the lowest offset at which a live key's newest record lies. A
// tombstone is not needed: whoever reads the topic from its start does without.
func (t *tail) needed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	lowest := int64(math.MaxInt64)
	for _, offset := range t.home {
		lowest = min(lowest, offset)
	}
	return lowest
}

// handleMirror checks our own account: whatever lies before our mirror record
// and is not in it was written by somebody else. Another relay's is noted
// only to learn of what came before this session.
func (t *tail) handleMirror(value []byte) {
	var m events.Mirror
	if json.Unmarshal(value, &m) != nil {
		t.surprise()
		return
	}
	t.mirror = m
	if m.Relay == t.instance && !t.ledger.Equals(m) {
		t.surprise()
	}
}

// surprise counts only once reading has caught up: what lies there from
// before is judged by the first reconciliation anyway.
func (t *tail) surprise() {
	if !t.follower.CaughtUp() {
		return
	}
	t.metrics.surprises.WithLabelValues(t.topic.Name).Inc()
	select {
	case t.surprised <- struct{}{}:
	default:
	}
}

// align makes account equal to what the topic holds, which it is unless
// somebody else wrote to it, and hands over the dirty keys.
func (t *tail) align(account *stream.Ledger) (*stream.Ledger, map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	dirty := t.dirty
	t.dirty = map[string]bool{}
	if account == nil || account.Count() != t.ledger.Count() || account.Sum() != t.ledger.Sum() || account.Generation() != t.ledger.Generation() {
		account = t.ledger.Clone()
	}
	return account, dirty
}

// lastMirror is the newest mirror record, zero if there is none.
func (t *tail) lastMirror() events.Mirror {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mirror
}
