package indexer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
)

// maxDetail is for a store that quotes the document.
const maxDetail = 2000

// letter is a record that can never be a document.
type letter struct {
	record  stream.Record
	eventID string
	verdict verdict
}

// maxValue fits Kafka's default of 1 MB with the value in base64. A letter that
// Kafka refuses would hold up everything behind it.
const maxValue = 700_000

func letterOptions(cfg stream.Config) []kgo.Opt {
	return append(cfg.ClientOptions(),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.UnknownTopicRetries(-1),
	)
}

// post writes letters and waits for all replicas' acknowledgement.
func (s *Service) post(ctx context.Context, letters []letter) error {
	if len(letters) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	records := make([]*kgo.Record, len(letters))
	results := make(chan kgo.ProduceResult, len(letters))
	of := make(map[*kgo.Record]letter, len(letters)) // results come in any order
	for i, l := range letters {
		r, err := s.letterRecord(l)
		if err != nil {
			return err
		}
		records[i], of[r] = r, l
	}
	for _, r := range records {
		s.producer.Produce(ctx, r, func(r *kgo.Record, err error) { results <- kgo.ProduceResult{Record: r, Err: err} })
	}
	var failed error
	for range records {
		result, err := next(ctx, results)
		if err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		if result.Err != nil {
			failed = result.Err
			continue
		}
		l := of[result.Record]
		s.settled[place{l.record.Partition, l.record.Offset}] = true
		s.metrics.letters.WithLabelValues(l.verdict.reason).Inc()
		s.deps.Log.Warn("usage event is a dead letter", "event", l.eventID, "reason", l.verdict.reason, "detail", l.verdict.detail,
			"partition", l.record.Partition, "offset", l.record.Offset)
	}
	if failed != nil {
		return fmt.Errorf("write dead letters: %w", failed)
	}
	return nil
}

// next does not wait for a record that the client cannot take back, because
// it may have reached a broker that has gone away since.
func next(ctx context.Context, results <-chan kgo.ProduceResult) (kgo.ProduceResult, error) {
	select {
	case r := <-results:
		return r, nil
	case <-ctx.Done():
		return kgo.ProduceResult{}, ctx.Err()
	}
}

func (s *Service) letterRecord(l letter) (*kgo.Record, error) {
	detail, body := l.verdict.detail, l.record.Value
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
	}
	if len(body) > maxValue {
		detail = fmt.Sprintf("value of %d bytes left out, it stands in the topic until its retention ends; %s", len(body), detail)
		body = nil
	}
	value, err := json.Marshal(deadletters.Letter{
		EventID: l.eventID, Reason: l.verdict.reason, Detail: detail,
		Topic: l.record.Topic, Partition: l.record.Partition, Offset: l.record.Offset,
		Value: body, At: s.deps.Now().UTC().Truncate(time.Millisecond),
	})
	if err != nil {
		return nil, fmt.Errorf("encode dead letter: %w", err)
	}
	var key []byte
	if l.eventID != "" {
		key = []byte(l.eventID)
	}
	return &kgo.Record{Topic: s.deps.Stream.Topic(deadletters.Topic), Key: key, Value: value}, nil
}
