package catalog

// Which part of the query is part of a cached answer's key.
const (
	QueryAll   = "all"
	QueryNone  = "none"
	QueryNamed = "named"
)

// Cache says how gateways cache answers to GET, and serve HEAD from them.
// What an answer says of itself (RFC 9111) goes before all of it. Durations
// are like 30s, 5m, 1h.
type Cache struct {
	// Enabled false keeps the settings and caches nothing, and takes an endpoint
	// out of what is cached of its service; left out is true.
	Enabled *bool `json:"enabled,omitempty"`
	// TTL is how long answers are fresh that do not say; empty or 0s: those
	// are not cached, there are no guesses (heuristic freshness).
	TTL string `json:"ttl,omitempty"`
	// NegativeTTL is the same for 404 and 410; empty is a tenth of TTL.
	NegativeTTL string `json:"negativeTTL,omitempty"`
	// Query is all, none or named: which parameters tell answers apart. named
	// takes those of QueryNames. Default all.
	Query      string   `json:"query,omitempty"`
	QueryNames []string `json:"queryNames,omitempty"`
	// Headers are request headers that tell answers apart beside those that
	// answers name in Vary, as the service sees them: X-Tenant-Id is the
	// tenant that the gate found.
	Headers []string `json:"headers,omitempty"`
	// StaleWhileRevalidate is how long past its freshness an answer is served
	// while it is loaded anew, StaleIfError while the service fails (RFC 5861),
	// where the answer does not say. Empty is not at all.
	StaleWhileRevalidate string `json:"staleWhileRevalidate,omitempty"`
	StaleIfError         string `json:"staleIfError,omitempty"`
	// MaxObjectBytes is the largest body that is stored; larger ones pass
	// through. Default 1 MiB.
	MaxObjectBytes int64 `json:"maxObjectBytes,omitempty"`
	// TagsHeader is the header of the service's answers that lists an answer's
	// tags, by which it can be purged; clients do not see it. Empty: no tags.
	TagsHeader string `json:"tagsHeader,omitempty"`
	// Shared says that answers do not depend on whose request it is: gateways
	// withhold the identity they found (X-Tenant-Id and its kind, a token they
	// verified) when they ask the service for an answer that may be stored, and
	// share it among all callers. Without it answers to requests with an
	// identity are shared only if they say public, s-maxage or must-revalidate.
	Shared bool `json:"shared,omitempty"`
}

// On reports whether answers are cached by it; nil is not.
func (c *Cache) On() bool { return c != nil && (c.Enabled == nil || *c.Enabled) }
