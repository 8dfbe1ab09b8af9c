// Package quotaevents is the contract of topic quota-events.v1: what happened
// to quotas that somebody outside may want to act on.
//
// A record is a CloudEvents 1.0 event in Kafka's binary mode: the attributes
// are headers (ce_id, ce_source, ce_specversion, ce_type, ce_time, ce_subject,
// content-type), the value is the data, and the relay's own headers stand
// beside them. Webhooks carry the same event in HTTP's structured mode (Event
// as JSON).
//
// # Once, and in order
//
// An event's id follows from what it tells of: the same crossing has the same
// id however often it is carried. Consumers that act on an event keep the ids
// they have acted on. The record's key is the tenant, or the subject of a
// counter without one, so the events of a counter keep their order.
//
// # Compatibility
//
// Types are an open vocabulary: consumers pass over those they do not know.
// Data only gains fields; another meaning is another type.
package quotaevents
