// Package proxy forwards a request to its service, or answers it from the cache.
//
// Forward rewrites the request (upstream address, identity headers in place of
// credentials, X-Forwarded), sends it through libs/httpcache where the route is
// cached, and streams the response to the client. Before the client sees
// anything of the response, Decision.Answered or Decision.Failed is called, once:
// there the gate ends the charges and records the event.
//
// # Invariants
//
//   - The path that was matched is the path that is forwarded.
//   - No API key is forwarded, and no header that only the gate or a trusted peer
//     may write, in no spelling that a server may take for it, trailers included.
//   - No response, early response (1xx) or trailer of a service contains a field
//     that the gate writes.
//   - A broken or missing body of a client is the client's error, not the service's.
package proxy
