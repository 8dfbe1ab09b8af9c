package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/schemas/events"
)

// MaxRecordBytes bounds key, value and headers of one record. It lies below
// max.message.bytes of the topics, so that what is too large is refused here,
// by name, and not by a broker for the whole batch.
const MaxRecordBytes = 1_000_000

// EnsureTopics creates the topics that are missing. A topic that exists with
// another number of partitions is an error: a key would have moved to another
// partition and left its old value behind. It may be called by several
// processes at once.
func EnsureTopics(ctx context.Context, cfg Config, topics []events.Topic, log *slog.Logger) error {
	client, err := kgo.NewClient(cfg.ClientOptions()...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = cfg.Topic(t.Name)
	}
	found, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, t := range topics {
		if err := ensureTopic(ctx, admin, cfg, t, found[cfg.Topic(t.Name)], log); err != nil {
			return fmt.Errorf("topic %s: %w", cfg.Topic(t.Name), err)
		}
	}
	return nil
}

func ensureTopic(ctx context.Context, admin *kadm.Client, cfg Config, t events.Topic, found kadm.TopicDetail, log *slog.Logger) error {
	if found.Err == nil && len(found.Partitions) > 0 {
		if got := len(found.Partitions); got != int(t.Partitions) {
			return fmt.Errorf("has %d partitions where %d are needed; create it anew, or give this deployment another topicPrefix", got, t.Partitions)
		}
		return nil
	}
	if found.Err != nil && !errors.Is(found.Err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("describe: %w", found.Err)
	}
	_, err := admin.CreateTopic(ctx, t.Partitions, max(1, cfg.ReplicationFactor), topicSettings(t), cfg.Topic(t.Name))
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil // another process was faster, with the same registry
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	log.Info("created topic", "topic", cfg.Topic(t.Name), "partitions", t.Partitions, "compacted", t.Compacted)
	return nil
}

// topicSettings: a compacted topic holds a mirror record a second, so segments
// are closed each hour and cleaned early. Deletions are kept for a day, far
// longer than any table takes to read the topic.
func topicSettings(t events.Topic) map[string]*string {
	millis := func(d time.Duration) *string { return kadm.StringPtr(strconv.FormatInt(d.Milliseconds(), 10)) }
	settings := map[string]*string{"max.message.bytes": kadm.StringPtr("1048588")}
	if !t.Compacted {
		settings["cleanup.policy"] = kadm.StringPtr("delete")
		settings["retention.ms"] = millis(t.Retention)
		return settings
	}
	settings["cleanup.policy"] = kadm.StringPtr("compact")
	settings["min.cleanable.dirty.ratio"] = kadm.StringPtr("0.1")
	settings["segment.ms"] = millis(time.Hour)
	settings["delete.retention.ms"] = millis(24 * time.Hour)
	return settings
}
