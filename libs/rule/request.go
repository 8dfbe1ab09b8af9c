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

// subjectParts is whose counter it is: the tenant or service that the counters
// lie with, and the name within it, empty for the tenant or service itself.
type subjectParts struct{ owner, name string }

// candidate is a subject of the request that rules of one kind and form may be
// about.
type candidate struct {
	kind kind
	form form
	// missing: the request lacks the identity; the counter is a shared one.
	missing bool
	subject subjectParts
}

// candidates lists the request's subjects: in each dimension the exact one, in
// those of members the tenant's, and any. dst has room for all of them.
func (r *Request) candidates(dst []candidate) []candidate {
	dst = plainCandidates(dst, kindTenant, subjectParts{owner: r.TenantID}, r.TenantID != "")
	dst = memberCandidates(dst, kindUser, subjectParts{r.TenantID, r.UserID})
	dst = memberCandidates(dst, kindApplication, subjectParts{r.TenantID, r.ApplicationID})
	// A key is found by its id, and counted with the request's tenant.
	dst = plainCandidates(dst, kindAPIKey, subjectParts{r.TenantID, r.APIKeyID}, r.APIKeyID != "")
	dst = plainCandidates(dst, kindService, subjectParts{owner: r.Service}, r.Service != "")
	return plainCandidates(dst, kindEndpoint, subjectParts{r.Service, r.Endpoint}, r.Endpoint != "")
}

// maxCandidates: four kinds of two, two of three.
const maxCandidates = 14

func plainCandidates(dst []candidate, k kind, s subjectParts, has bool) []candidate {
	if has {
		dst = append(dst, candidate{kind: k, form: formExact, subject: s})
	} else {
		s = subjectParts{} // one counter for all without
	}
	return append(dst, candidate{kind: k, form: formAny, subject: s, missing: !has})
}

func memberCandidates(dst []candidate, k kind, s subjectParts) []candidate {
	has := s.owner != "" && s.name != ""
	if s.owner != "" {
		// Without a name: the counter shared within the tenant.
		dst = append(dst, candidate{kind: k, form: formTenantWide, subject: s, missing: !has})
	}
	return plainCandidates(dst, k, s, has)
}
