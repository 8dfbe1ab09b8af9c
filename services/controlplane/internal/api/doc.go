// Package api is what all operations of the control plane's REST surface share:
// the chain that a request passes before its operation, the problems it is
// refused with, and the contract.
//
// A request is counted, recovered and authenticated (chain.go, token.go), its
// header, URL and body are checked (body.go), and huma routes it to a handler
// that Register added. A handler reads the caller by Actor and the body by Decode.
//
// # Invariants
//
//   - A mistake of the caller is a 4xx that names the field; a database that is
//     away is 503 with Retry-After; 500 is a bug (failure.go).
//   - No label of a metric and no text of an answer comes from an unchecked
//     value of a caller.
package api
