package catalog

// Topic is the name of the topic, without a deployment prefix.
const Topic = "catalog.v1"

// Service is one record of catalog.v1; its key is Name.
type Service struct {
	// Name names the service in rules and usage; 1 to 128 characters.
	Name string `json:"name"`
	// Version grows with every write; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// Prefix is the route prefix, such as /payments/; requests under it belong
	// to this service. The longest prefix wins.
	Prefix string `json:"prefix"`
	// StripPrefix forwards the path without its prefix.
	StripPrefix bool `json:"stripPrefix,omitempty"`
	// RequireKey refuses requests without a valid API key (401); it is short
	// for requireIdentity key.
	RequireKey bool `json:"requireKey,omitempty"`
	// RequireIdentity refuses requests without a credential of that kind (401):
	// key, token (a JWT of an issuer the gateway is configured with) or
	// keyOrToken. Empty demands none. Identity headers are no credential,
	// whoever sends them.
	RequireIdentity string `json:"requireIdentity,omitempty"`
	// RefuseStaleKeys refuses requests with an API key (503) while the gateway
	// cannot know whether it was revoked: its keys are older than
	// gateway.identity.maxStaleness.
	RefuseStaleKeys bool `json:"refuseStaleKeys,omitempty"`
	// CostHeader is the header of the service's answers that says what the
	// request really cost, a whole number of units from 0 to 2^53. The
	// difference to what was charged is charged or refunded, and never denied.
	// Clients do not see the header. Empty: costs stay as they were charged.
	CostHeader string `json:"costHeader,omitempty"`
	// MaxCost is the largest cost that CostHeader is believed, 1 to 2^53 units;
	// default 1,000,000. What is above it, and above what was charged, is taken for
	// a mistake: the charge stays as it was. It bounds reservations as well.
	MaxCost *int64 `json:"maxCost,omitempty"`
	// LegacyHeaders adds X-RateLimit-Limit, -Remaining and -Reset to answers.
	LegacyHeaders bool `json:"legacyHeaders,omitempty"`
	// Cache says how gateways cache the service's answers; nil is not at all.
	// An endpoint's own takes its place.
	Cache *Cache `json:"cache,omitempty"`
	// Upstreams are where requests are forwarded to.
	Upstreams []Upstream `json:"upstreams"`
	// Endpoints give costs to patterns; a path under the prefix that none
	// matches is forwarded at cost 1.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// Kinds of credentials a service may demand.
const (
	RequireKey        = "key"
	RequireToken      = "token"
	RequireKeyOrToken = "keyOrToken"
)

// Upstream is one place a service runs.
type Upstream struct {
	// URL is http:// or https:// with a host and no query.
	URL string `json:"url"`
	// Region is a free label; empty is none.
	Region string `json:"region,omitempty"`
	// Weight shares requests among upstreams; 0 to 1000, default 1, 0 takes none.
	Weight *int `json:"weight,omitempty"`
}

// Endpoint is a pattern of a service and what a request to it costs.
type Endpoint struct {
	// Pattern is METHOD /path in the syntax of net/http.ServeMux, route prefix
	// included; the method may be left out.
	Pattern string `json:"pattern"`
	// Cost is units a request; 0 is free. Default 1.
	Cost *int64 `json:"cost,omitempty"`
	// Cache takes the place of the service's, as a whole; nil is the service's.
	Cache *Cache `json:"cache,omitempty"`
	// About is for people.
	About string `json:"about,omitempty"`
}
