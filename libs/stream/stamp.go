package stream

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/schemas/events"
)

// Stamp is what the headers of a compacted topic's record say.
type Stamp struct {
	// Generation and Version order the records of a key, in that order.
	Generation, Version int64
	// CommittedAt is the commit in Postgres, zero where it is not known (a
	// record published by reconciliation). RelayedAt is when the relay handed
	// the record to its producer. Both in µs.
	CommittedAt, RelayedAt time.Time
}

// Headers are the record headers that carry the stamp.
func (s Stamp) Headers() []kgo.RecordHeader {
	headers := []kgo.RecordHeader{
		{Key: events.HeaderGeneration, Value: decimal(s.Generation)},
		{Key: events.HeaderVersion, Value: decimal(s.Version)},
		{Key: events.HeaderRelayedAt, Value: decimal(s.RelayedAt.UnixMicro())},
	}
	if !s.CommittedAt.IsZero() {
		headers = append(headers, kgo.RecordHeader{Key: events.HeaderCommittedAt, Value: decimal(s.CommittedAt.UnixMicro())})
	}
	return headers
}

// ParseStamp reads the headers of a record. Generation and version must be
// there, and not be negative; the times may be missing.
func ParseStamp(headers []kgo.RecordHeader) (Stamp, error) {
	s := Stamp{Generation: -1, Version: -1}
	for _, h := range headers {
		switch h.Key {
		case events.HeaderGeneration, events.HeaderVersion, events.HeaderCommittedAt, events.HeaderRelayedAt:
		default:
			continue
		}
		n, err := strconv.ParseInt(string(h.Value), 10, 64)
		if err != nil {
			return Stamp{}, fmt.Errorf("header %s: %w", h.Key, err)
		}
		switch h.Key {
		case events.HeaderGeneration:
			s.Generation = n
		case events.HeaderVersion:
			s.Version = n
		case events.HeaderCommittedAt:
			s.CommittedAt = time.UnixMicro(n)
		case events.HeaderRelayedAt:
			s.RelayedAt = time.UnixMicro(n)
		}
	}
	if s.Generation < 0 || s.Version < 0 {
		return Stamp{}, fmt.Errorf("headers %s and %s are missing or negative", events.HeaderGeneration, events.HeaderVersion)
	}
	return s, nil
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
