// Package reject writes the answers that the gate gives by itself, as
// problem+json (RFC 9457), and names the reasons of those that no decision was
// made on.
//
// A Problem is any such answer. A Rejection is one to a request on which nothing
// was decided: nothing is charged, no event is written, and the metric
// sluice_gateway_refused_total counts it by its Reason.
package reject
