package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errNoTopic: Kafka answers, and the topic is not there.
var errNoTopic = errors.New("topic does not exist")

// bounds is what a topic of one partition is at one moment.
type bounds struct {
	id         kadm.TopicID
	partitions int
	start, end int64
}

// topicAdmin looks at one topic. Its client is apart from the one that reads:
// a client that once saw a topic keeps believing in that incarnation.
type topicAdmin struct {
	client *kgo.Client
	admin  *kadm.Client
	topic  string
}

// lookLimit bounds one look: the client would retry for longer.
const lookLimit = 3 * time.Second

func newAdmin(cfg Config, topic string) (*topicAdmin, error) {
	client, err := kgo.NewClient(cfg.ClientOptions()...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &topicAdmin{client: client, admin: kadm.NewClient(client), topic: topic}, nil
}

func (a *topicAdmin) close() { a.client.Close() }

func (a *topicAdmin) bounds(ctx context.Context) (bounds, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	topics, err := a.admin.ListTopics(ctx, a.topic)
	if err != nil {
		return bounds{}, err
	}
	detail := topics[a.topic]
	if errors.Is(detail.Err, kerr.UnknownTopicOrPartition) || (detail.Err == nil && len(detail.Partitions) == 0) {
		return bounds{}, errNoTopic
	}
	if detail.Err != nil {
		return bounds{}, detail.Err
	}
	b := bounds{id: detail.ID, partitions: len(detail.Partitions)}
	if b.start, err = offsetOf(ctx, a.topic, a.admin.ListStartOffsets); err != nil {
		return bounds{}, fmt.Errorf("first offset: %w", err)
	}
	if b.end, err = offsetOf(ctx, a.topic, a.admin.ListEndOffsets); err != nil {
		return bounds{}, fmt.Errorf("last offset: %w", err)
	}
	return b, nil
}

func offsetOf(ctx context.Context, topic string, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (int64, error) {
	listed, err := list(ctx, topic)
	if err != nil {
		return 0, err
	}
	offset, ok := listed.Lookup(topic, 0)
	if !ok {
		return 0, errNoTopic
	}
	if errors.Is(offset.Err, kerr.UnknownTopicOrPartition) {
		return 0, errNoTopic
	}
	return offset.Offset, offset.Err
}
