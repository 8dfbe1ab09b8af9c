package httpcache

import "time"

// Policy is how a route's responses are cached. It is not changed once it is in use.
type Policy struct {
	// TTL and NegativeTTL are the lifetimes of responses that state none; NegativeTTL is that of 404 and 410.
	TTL, NegativeTTL time.Duration
	// StaleWhileRevalidate and StaleIfError are the stale limits (RFC 5861) of responses that state none.
	StaleWhileRevalidate, StaleIfError time.Duration
	// Query says which query parameters distinguish responses; QueryNames are those of QueryNamed.
	Query      Query
	QueryNames []string
	// Headers are request headers, canonical and sorted, that distinguish responses beside those of Vary.
	Headers []string
	// MaxBytes is the largest body that is stored; larger ones pass through.
	MaxBytes int64
	// TagsHeader is the response field, canonical, that names the response's tags for purges.
	TagsHeader string
	// Shared: responses are the same for every caller; the origin does not learn who the caller is.
	Shared bool
}

// Query says which query parameters distinguish responses.
type Query uint8

// The choices of Policy.Query.
const (
	QueryAll Query = iota
	QueryNone
	QueryNamed
)
