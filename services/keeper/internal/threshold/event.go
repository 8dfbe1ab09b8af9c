package threshold

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/services/keeper/internal/counter"
)

// source is the CloudEvents source.
const source = "/sluice/keeper"

// eventSpace makes these ids differ from others made of the same text.
var eventSpace = uuid.MustParse("6f1c9d0e-5f0b-5d53-9c2e-2f4b7d7c1a10")

// id is the announcement's: the same row has the same id, whoever finds it.
func (r row) id() uuid.UUID {
	return uuid.NewSHA1(eventSpace, []byte(r.counter+"\x00"+r.name()+"\x00"+r.limitName()))
}

// messageOf is the announcement of a row.
func messageOf(r row, o *observation, version int64) (outbox.Message, error) {
	subject, tenant := counter.Subject(r.counter), counter.Tenant(r.counter)
	var limit *int64
	if r.limit != noLimit {
		limit = &r.limit
	}
	data, err := json.Marshal(quotaevents.Reached{
		TenantID: tenant, Subject: subject, Metric: o.metric, Period: counter.Calendar(r.counter), Counter: r.counter,
		Threshold: quotaevents.Threshold{Percent: r.percent, Absolute: r.absolute}, At: r.at, Limit: limit,
		Used: o.used(), Consumed: o.consumed, Refunded: o.refunded, Forfeited: o.forfeited, DecisionID: o.decision,
	})
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode quota event: %w", err)
	}
	e := quotaevents.Event{
		SpecVersion: quotaevents.SpecVersion, ID: r.id().String(), Source: source, Type: quotaevents.TypeThresholdReached,
		Subject: subject.Kind + "/" + subject.Value, Time: o.at.Truncate(time.Millisecond), DataContentType: quotaevents.ContentType,
	}
	m := outbox.Message{Topic: quotaevents.Topic, Key: tenant, Version: version, Payload: data, Headers: e.Headers()}
	if m.Key == "" {
		m.Key = e.Subject
	}
	return m, nil
}
