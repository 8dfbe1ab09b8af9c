// Package httpcache is a shared HTTP cache (RFC 9111) for a proxy: it stands
// between the proxy and its transport, and stores responses in libs/cache, in
// this process and in Redis for all processes of a deployment.
//
// # Use
//
// A proxy makes one Cache, calls Run, and for each request whose route has a
// Policy asks for a Lookup:
//
//	l := c.Lookup(r, httpcache.Target{Family: "shop", Policy: policy, Path: path})
//	if l == nil { … } // neither GET nor HEAD
//	res, err := l.RoundTrip(outgoing, transport)
//
// Lookup.Find tells before that whether a stored response will be served.
// After a request with another method the proxy calls InvalidateAfter.
//
// # Model
//
// The responses of one origin are a family of libs/cache, so that concurrent
// requests for one cold resource become one load in the whole deployment. A
// resource (host, path, query as far as the policy distinguishes by it) has a
// primary response, whose Vary leads on to the others. Requests with an
// identity (Options.Identity or Authorization) have a partition of
// their own, unless the policy says that responses are the same for everybody.
//
// Freshness, validation, ranges and conditions follow RFC 9111 and RFC 9110,
// the stale limits RFC 5861, and Cache-Status RFC 9211. There is no heuristic
// freshness: a response that does not say how long it is fresh gets the
// policy's lifetime.
//
// # Purges
//
// A purge covers a URL, a path prefix, a tag or a family. Purges are totally
// ordered, and a stored response carries the newest position that was known
// when its load began: it is void once a later purge covers it, whichever
// process stored it. A process that has not read the purges yet must say so by
// Options.Usable; it then serves and stores nothing.
//
// # Failure
//
// Without Redis each process keeps its own responses and loads for itself. A
// load outlives the request that began it, and fails alone: a failed origin
// is answered from a stale response within its limits.
package httpcache
