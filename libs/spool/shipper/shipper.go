package shipper

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Shipper carries records from a spool to Kafka; see the package comment.
type Shipper struct {
	o       Options
	topic   string
	metrics *metrics
}

// New checks the options and starts nothing.
func New(o Options) (*Shipper, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("shipper options: %w", err)
	}
	if err := kgo.ValidateOpts(o.clientOptions()...); err != nil {
		return nil, fmt.Errorf("shipper's Kafka options: %w", err)
	}
	m, err := newMetrics(o.Registerer, o.Spool.Stats)
	if err != nil {
		return nil, fmt.Errorf("register shipper metrics: %w", err)
	}
	return &Shipper{o: o, topic: o.Stream.Topic(o.Topic), metrics: m}, nil
}

// Run ships until the context is cancelled, then goes on for at most
// DrainTimeout until the spool is empty, so whoever appends stops before. It
// returns nil; what is left stays in the spool.
func (s *Shipper) Run(ctx context.Context) error {
	client, err := kgo.NewClient(s.o.clientOptions()...)
	if err != nil {
		return fmt.Errorf("make Kafka producer: %w", err)
	}
	defer client.Close()
	// work outlives ctx by the drain.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.o.Spool.Rewind()

	inFlight := make(chan *batch, s.o.MaxInFlight)
	settled := make(chan struct{})
	go func() { // owned by Run, which waits for settled
		defer close(settled)
		s.settleAll(work, client, inFlight)
	}()
	limit := context.AfterFunc(ctx, func() { time.AfterFunc(s.o.DrainTimeout, stop) })
	s.feed(ctx, work, client, inFlight)
	close(inFlight)
	<-settled
	limit()
	if left := s.o.Spool.Stats().Pending; left > 0 {
		s.o.Log.Warn("stopped with records left in the spool; the next start ships them", "records", left)
	}
	return nil
}

// feed reads the spool until work is done, or ctx is and nothing is left.
func (s *Shipper) feed(ctx, work context.Context, client *kgo.Client, inFlight chan<- *batch) {
	for work.Err() == nil {
		records, mark := s.o.Spool.Next(s.o.BatchRecords)
		if len(records) == 0 {
			if ctx.Err() != nil {
				return
			}
			_ = s.o.Spool.Wait(ctx) // its end is seen above, after one more look
			continue
		}
		select {
		case inFlight <- s.produce(work, client, records, mark):
		case <-work.Done():
		}
	}
}

// settleAll acknowledges batches in their order. After one that could not be
// settled none is: a mark covers everything before it.
func (s *Shipper) settleAll(work context.Context, client *kgo.Client, inFlight <-chan *batch) {
	whole := true
	for b := range inFlight {
		whole = whole && s.settle(work, client, b)
		if whole {
			s.o.Spool.Advance(b.mark)
		}
	}
}
