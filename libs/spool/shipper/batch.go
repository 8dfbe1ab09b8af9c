package shipper

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/spool"
)

// batch is what one Next gave, on its way to Kafka.
type batch struct {
	records []*kgo.Record
	errs    []error // one a record; written by the promises, read after done
	mark    spool.Mark
	left    atomic.Int64
	done    chan struct{}
}

// produce hands a batch to the client. It does not block: the client buffers
// more than can be in flight.
func (s *Shipper) produce(ctx context.Context, client *kgo.Client, records []spool.Record, mark spool.Mark) *batch {
	b := &batch{
		records: make([]*kgo.Record, len(records)),
		errs:    make([]error, len(records)),
		mark:    mark,
		done:    make(chan struct{}),
	}
	b.left.Store(int64(len(records)))
	for i, r := range records {
		b.records[i] = s.record(r)
		client.Produce(ctx, b.records[i], func(_ *kgo.Record, err error) {
			b.errs[i] = err
			if b.left.Add(-1) == 0 {
				close(b.done)
			}
		})
	}
	return b
}

func (s *Shipper) record(r spool.Record) *kgo.Record {
	key := r.Key
	if len(key) == 0 && s.o.KeyOf != nil {
		key = s.o.KeyOf(r.Value)
	}
	if len(key) == 0 {
		key = nil // an empty key would send all such records to one partition
	}
	return &kgo.Record{Topic: s.topic, Key: key, Value: r.Value}
}

// settle waits until each record of the batch is in Kafka or refused for good.
// It reports false when work ended before.
func (s *Shipper) settle(work context.Context, client *kgo.Client, b *batch) bool {
	select {
	case <-b.done:
	case <-work.Done():
		return false
	}
	for i, err := range b.errs {
		if err != nil && !s.settleAlone(work, client, b.records[i], err) {
			return false
		}
		if err == nil {
			s.metrics.shipped.Inc()
		}
	}
	return true
}

// settleAlone sends a failed record by itself: a refusal of a whole produce
// batch does not say whose fault it was.
func (s *Shipper) settleAlone(work context.Context, client *kgo.Client, r *kgo.Record, err error) bool {
	pause := backoff.Backoff{}
	for alone := false; err != nil; alone = true {
		switch {
		case work.Err() != nil:
			return false
		case refused(err) && alone:
			s.metrics.refused.Inc()
			s.o.Log.Error("Kafka refused a spooled record for good; it is skipped",
				"topic", r.Topic, "bytes", len(r.Key)+len(r.Value), "cause", err)
			return true
		case !refused(err):
			s.o.Log.Warn("a spooled record was not accepted; trying again", "topic", r.Topic, "cause", err)
			if pause.Wait(work) != nil {
				return false
			}
		}
		s.metrics.retries.Inc()
		err = produceOne(work, client, &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value})
	}
	s.metrics.shipped.Inc()
	return true
}

// produceOne does not wait, once work is done, for a record that the client
// cannot take back because it may have reached a broker.
func produceOne(work context.Context, client *kgo.Client, r *kgo.Record) error {
	done := make(chan error, 1)
	client.Produce(work, r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-work.Done():
		return work.Err()
	}
}

// refused reports errors that the same record will meet again. All others end
// some time: a topic is created, a right given, a broker back.
func refused(err error) bool {
	for _, e := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
