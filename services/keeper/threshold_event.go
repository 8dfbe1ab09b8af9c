package keeper

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// thresholdSource is the CloudEvents source: what happened was found here.
const thresholdSource = "/sluice/keeper"

// eventSpace makes ids of ours differ from others made of the same text.
var eventSpace = uuid.MustParse("6f1c9d0e-5f0b-5d53-9c2e-2f4b7d7c1a10")

// id follows from counter (with its period), threshold and arming, so that the
// same crossing has the same id, whoever finds it and how often.
func (r thresholdRow) id() uuid.UUID {
	return uuid.NewSHA1(eventSpace, []byte(r.counter+"\x00"+r.point.name()+"\x00"+r.arming.name()))
}

// messageOf is the announcement of a row, without its version.
func messageOf(r thresholdRow) (outbox.Message, error) {
	subject := subjectOf(r.counter)
	data, err := json.Marshal(quotaevents.Reached{
		TenantID: tenantOf(r.counter), Subject: subject, Metric: r.metric, Period: calendarOf(r.counter), Counter: r.counter,
		Threshold: quotaevents.Threshold{Percent: r.percent, Absolute: r.absolute}, At: r.point.at, Limit: r.sighting.limit,
		Used: r.used(), Consumed: r.announce.consumed, Refunded: r.announce.refunded, Forfeited: r.announce.forfeited,
		DecisionID: r.announce.decision,
	})
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode quota event: %w", err)
	}
	e := quotaevents.Event{
		SpecVersion: quotaevents.SpecVersion, ID: r.id().String(), Source: thresholdSource, Type: quotaevents.TypeThresholdReached,
		Subject: subject.Kind + "/" + subject.Value, Time: r.announce.at.Truncate(time.Millisecond), DataContentType: quotaevents.ContentType,
	}
	m := outbox.Message{Topic: quotaevents.Topic, Key: tenantOf(r.counter), Payload: data, Headers: e.Headers()}
	if m.Key == "" {
		m.Key = e.Subject
	}
	return m, nil
}

// columns are rows turned for unnest.
type columns struct {
	counters, thresholds, armings []string
	reached                       []bool
	events                        []*uuid.UUID
	used                          []*int64
	at                            []time.Time
}

func newColumns(n int) *columns {
	return &columns{
		counters: make([]string, 0, n), thresholds: make([]string, 0, n), armings: make([]string, 0, n),
		reached: make([]bool, 0, n), events: make([]*uuid.UUID, 0, n), used: make([]*int64, 0, n), at: make([]time.Time, 0, n),
	}
}

func (c *columns) add(r thresholdRow, now time.Time) {
	c.counters = append(c.counters, r.counter)
	c.thresholds = append(c.thresholds, r.point.name())
	c.armings = append(c.armings, r.arming.name())
	c.reached = append(c.reached, r.announce != nil)
	var event *uuid.UUID
	var used *int64
	if r.announce != nil {
		event, used, now = new(r.id()), new(r.used()), r.announce.at
	}
	c.events, c.used, c.at = append(c.events, event), append(c.used, used), append(c.at, now)
}
