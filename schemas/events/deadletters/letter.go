package deadletters

import "time"

// Topic is the name of the topic, without a deployment prefix.
const Topic = "usage-dead-letters.v1"

// Reasons; an open vocabulary.
const (
	// ReasonUndecodable is a record that is no JSON object of the event's shape.
	ReasonUndecodable = "undecodable"
	// ReasonRefused is a document that the usage store refused for good.
	ReasonRefused = "refused"
	// ReasonLate is an event outside the days that are kept.
	ReasonLate = "late"
)

// Letter is one record of usage-dead-letters.v1.
type Letter struct {
	// EventID is the event's id where it could be read.
	EventID string `json:"eventId,omitempty"`
	// Reason is one word; Detail is the store's or decoder's own.
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Topic, Partition and Offset say where the record stood.
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	// Value is the record's value as it was (base64 in JSON).
	Value []byte    `json:"value"`
	At    time.Time `json:"at"`
}
