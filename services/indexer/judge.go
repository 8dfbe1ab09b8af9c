package indexer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// clockTolerance is how far an event may be ahead of its record in Kafka.
const clockTolerance = 5 * time.Minute

// verdict is why a record can never be a document; the zero one is that it
// can.
type verdict struct{ reason, detail string }

// judge decodes a record. The time is held against the record's, not the
// clock's: a record that is read late, or again, is judged the same.
func judge(r stream.Record, retentionDays int) (usage.Event, verdict) {
	var e usage.Event
	if err := json.Unmarshal(r.Value, &e); err != nil {
		return usage.Event{}, verdict{deadletters.ReasonUndecodable, err.Error()}
	}
	switch {
	case e.ID == "":
		return e, verdict{deadletters.ReasonUndecodable, "the event has no id"}
	case e.TS.IsZero():
		return e, verdict{deadletters.ReasonUndecodable, "the event has no ts"}
	case e.TS.Before(r.Timestamp.AddDate(0, 0, -retentionDays)):
		return e, verdict{deadletters.ReasonLate, fmt.Sprintf("ts %s is more than %d days before the record's time %s",
			e.TS.Format(time.RFC3339), retentionDays, r.Timestamp.UTC().Format(time.RFC3339))}
	case e.TS.After(r.Timestamp.Add(clockTolerance)):
		return e, verdict{deadletters.ReasonLate, fmt.Sprintf("ts %s is more than %s after the record's time %s",
			e.TS.Format(time.RFC3339), clockTolerance, r.Timestamp.UTC().Format(time.RFC3339))}
	}
	return e, verdict{}
}
