package rule

import "time"

// Request is what rules are matched against.
type Request struct {
	// Identity; empty is missing. A user or application without a tenant is
	// missing too. APIKeyID is the key's id, never the key.
	TenantID, UserID, ApplicationID, APIKeyID string
	// Service is the service of the route prefix.
	Service string
	// Endpoint is the matched catalog pattern as route.Pattern.String gives it,
	// "" where the catalog has none.
	Endpoint string
	// Method and Path are what scopes match; Path is route.CleanPath's.
	Method, Path string
	// Cost is the request's own cost, for rules that set none.
	Cost int64
	// Now decides validFrom and validUntil; it must be set.
	Now time.Time
}
