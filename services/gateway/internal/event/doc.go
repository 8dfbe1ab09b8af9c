// Package event writes usage events: their JSON, their ids, and the bounds of what a
// client can make them carry.
//
// The encoder is without reflection, since it runs once a decision before the answer
// is sent; a test holds it equal to encoding/json.
package event
