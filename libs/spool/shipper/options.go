package shipper

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/spool"
	"github.com/sluice-platform/sluice/libs/stream"
)

// Defaults of Options.
const (
	DefaultBatchRecords = 500
	DefaultMaxInFlight  = 16
	DefaultDrainTimeout = 5 * time.Second
)

// Options of New. Spool, Stream and Topic are required.
type Options struct {
	// Spool is read by this shipper alone; it stays open when Run returns.
	Spool  *spool.Spool
	Stream stream.Config
	// Topic without the deployment's prefix.
	Topic string
	// KeyOf gives the Kafka key of a record that was appended without one; nil
	// leaves those to any partition.
	KeyOf func(record []byte) []byte
	// BatchRecords is how many records are acknowledged together; default
	// DefaultBatchRecords.
	BatchRecords int
	// MaxInFlight is how many batches are on their way at once; default
	// DefaultMaxInFlight.
	MaxInFlight int
	// DrainTimeout bounds how long Run goes on after its context was
	// cancelled while the spool is not empty; default DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Registerer gets the metrics; nil registers none.
	Registerer prometheus.Registerer
	// Log; nil is slog.Default.
	Log *slog.Logger
}

func (o *Options) complete() error {
	switch {
	case o.Spool == nil:
		return errors.New("no spool given")
	case o.Topic == "":
		return errors.New("no topic given")
	case len(o.Stream.Brokers) == 0:
		return errors.New("no Kafka brokers given")
	}
	if o.BatchRecords <= 0 {
		o.BatchRecords = DefaultBatchRecords
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = DefaultDrainTimeout
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return nil
}

// clientOptions of the producer. Retries have no end, also for a topic that
// the relay has yet to create; what fails all the same is judged by refused.
func (o *Options) clientOptions() []kgo.Opt {
	return append(o.Stream.ClientOptions(),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.UnknownTopicRetries(-1),
		// One more than can be in flight: Produce blocks at the bound.
		kgo.MaxBufferedRecords(o.BatchRecords*(o.MaxInFlight+2)+1),
	)
}
