package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stuckAfter ends a ReadSince to which Kafka gives nothing any more.
const stuckAfter = 20 * time.Second

// ReadSince hands over every record of a topic that a group has not committed,
// up to the ends the topic has now, without joining the group: what others
// have read and not yet made durable, too. Both are named without deployment
// prefix. Batches are of one partition, in order. It fails where the topic is
// not there, and returns the first error of handle.
func ReadSince(ctx context.Context, cfg Config, group, topic string, handle func(batch []Record) error) error {
	topic, group = cfg.Topic(topic), cfg.Topic(group)
	admin, err := kgo.NewClient(cfg.ClientOptions()...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	from, ends, err := unread(ctx, kadm.NewClient(admin), group, topic)
	admin.Close()
	if err != nil {
		return fmt.Errorf("offsets of %s: %w", topic, err)
	}
	if len(from) == 0 {
		return nil
	}
	client, err := kgo.NewClient(append(cfg.ClientOptions(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	return readTo(ctx, client, ends, handle)
}

// unread is what lies between a group's commits and the ends, by partition.
func unread(ctx context.Context, admin *kadm.Client, group, topic string) (map[int32]kgo.Offset, map[int32]int64, error) {
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	listed, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	from, ends := map[int32]kgo.Offset{}, map[int32]int64{}
	for partition, end := range listed[topic] {
		start, ok := starts.Lookup(topic, partition)
		switch {
		case end.Err != nil:
			return nil, nil, end.Err
		case !ok || start.Err != nil:
			return nil, nil, fmt.Errorf("no first offset of partition %d: %w", partition, start.Err)
		}
		at := start.Offset
		if c, ok := committed.Lookup(topic, partition); ok {
			at = max(at, c.At)
		}
		if at < end.Offset {
			from[partition], ends[partition] = kgo.NewOffset().At(at), end.Offset
		}
	}
	if len(listed[topic]) == 0 {
		return nil, nil, errNoTopic
	}
	return from, ends, nil
}

func readTo(ctx context.Context, client *kgo.Client, ends map[int32]int64, handle func([]Record) error) error {
	for len(ends) > 0 {
		polling, cancel := context.WithTimeout(ctx, stuckAfter)
		fetches := client.PollFetches(polling)
		cancel()
		if fetches.Empty() {
			return fmt.Errorf("nothing was read for %s, %d partitions short of their ends: %w", stuckAfter, len(ends), fetches.Err0())
		}
		var failed error
		fetches.EachError(func(_ string, partition int32, err error) {
			failed = fmt.Errorf("read partition %d: %w", partition, err)
		})
		if failed != nil {
			return failed
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if failed != nil || len(p.Records) == 0 {
				return
			}
			batch := make([]Record, len(p.Records))
			for i, r := range p.Records {
				batch[i] = Record{Key: r.Key, Value: r.Value, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
			}
			failed = handle(batch)
			if end, open := ends[p.Partition]; open && batch[len(batch)-1].Offset+1 >= end {
				delete(ends, p.Partition)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}
