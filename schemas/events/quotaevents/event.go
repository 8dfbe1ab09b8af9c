package quotaevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Topic is the name of the topic, without a deployment prefix.
const Topic = "quota-events.v1"

// Types; an open vocabulary.
const (
	// TypeThresholdReached: a quota's use reached a threshold. Data is Reached.
	TypeThresholdReached = "com.sluice.quota.threshold.reached.v1"
	// TypeTest is sent by a webhook's test button alone, never on the topic.
	// Data is Test.
	TypeTest = "com.sluice.webhook.test.v1"
)

// Types are those of the topic's events, which a webhook may ask for. It is not to
// be changed.
var Types = []string{TypeThresholdReached}

const (
	// SpecVersion is of CloudEvents.
	SpecVersion = "1.0"
	// ContentType is of the data.
	ContentType = "application/json"
	// StructuredContentType is of an Event as JSON.
	StructuredContentType = "application/cloudevents+json"
)

// Headers of a record, after the Kafka protocol binding of CloudEvents 1.0:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
const (
	headerID          = "ce_id"
	headerSource      = "ce_source"
	headerSpecVersion = "ce_specversion"
	headerType        = "ce_type"
	headerTime        = "ce_time"
	headerSubject     = "ce_subject"
	headerContentType = "content-type"
)

// Event is a CloudEvents 1.0 event; as JSON it is the structured mode.
type Event struct {
	SpecVersion string `json:"specversion"`
	// ID is unique together with Source.
	ID     string `json:"id"`
	Source string `json:"source"`
	Type   string `json:"type"`
	// Subject is whose quota it is: kind/value, such as tenant/acme.
	Subject string `json:"subject,omitempty"`
	// Time is when it happened, UTC, milliseconds.
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// Headers are the attributes in binary mode; the value is Data.
func (e Event) Headers() map[string]string {
	h := map[string]string{
		headerID: e.ID, headerSource: e.Source, headerSpecVersion: e.SpecVersion, headerType: e.Type,
		headerTime: e.Time.UTC().Format(time.RFC3339Nano), headerContentType: e.DataContentType,
	}
	if e.Subject != "" {
		h[headerSubject] = e.Subject
	}
	return h
}

// FromRecord reads an event in binary mode: header returns a header's value,
// empty without one.
func FromRecord(header func(name string) string, value []byte) (Event, error) {
	e := Event{
		SpecVersion: header(headerSpecVersion), ID: header(headerID), Source: header(headerSource), Type: header(headerType),
		Subject: header(headerSubject), DataContentType: header(headerContentType), Data: value,
	}
	switch {
	case e.SpecVersion != SpecVersion:
		return Event{}, fmt.Errorf("header %s is %q, not %s", headerSpecVersion, e.SpecVersion, SpecVersion)
	case e.ID == "" || e.Source == "" || e.Type == "":
		return Event{}, fmt.Errorf("headers %s, %s and %s must be given", headerID, headerSource, headerType)
	case !json.Valid(value):
		return Event{}, errors.New("the value is no JSON")
	}
	at, err := time.Parse(time.RFC3339Nano, header(headerTime))
	if err != nil {
		return Event{}, fmt.Errorf("header %s: %w", headerTime, err)
	}
	e.Time = at.UTC()
	return e, nil
}
