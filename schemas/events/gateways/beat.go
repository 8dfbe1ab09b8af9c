package gateways

import "time"

// Topic is the name of the topic, without a deployment prefix.
const Topic = "gateways.v1"

// Every is the time between two beats of a gateway; GoneAfter is how long one
// is counted as live after its last.
const (
	Every     = 5 * time.Second
	GoneAfter = 15 * time.Second
)

// Beat says that a gateway lives, or with Leaving that it stops. A process that
// is started anew under the same id has a later Started.
type Beat struct {
	ID string `json:"id"`
	// Started is when the process began to beat, UTC.
	Started time.Time `json:"started"`
	// Address is where clients reach it, as it listens.
	Address string `json:"address,omitempty"`
	// Seq counts the beats of one process, from 1.
	Seq int64 `json:"seq"`
	// Leaving is the last beat of a process that stops in good order.
	Leaving bool `json:"leaving,omitempty"`
}
