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
	hash    uint64 // of where the rules lie, before their scope
}

// sets are the bits of the table's sets that hold rules about the candidate.
func (c *candidate) sets(present uint64) uint64 {
	return present >> setOf(c.kind, c.form, 0) & (1<<numScopes - 1)
}

// maxCandidates: four kinds of two, two of three.
const maxCandidates = 14

// candidates are a request's, as far as there are rules about them.
type candidates struct {
	present uint64
	n       int
	all     [maxCandidates]candidate
}

// list finds the request's subjects: in each dimension the exact one, in those
// of members the tenant's, and any. present has a bit for each set of rules.
func (cs *candidates) list(r *Request, present uint64) []candidate {
	cs.present, cs.n = present, 0
	tenant := hashSubject(hashOf(r.TenantID), 0)
	cs.plain(kindTenant, subjectParts{owner: r.TenantID}, r.TenantID != "", tenant)
	cs.member(kindUser, subjectParts{r.TenantID, r.UserID}, tenant)
	cs.member(kindApplication, subjectParts{r.TenantID, r.ApplicationID}, tenant)
	// A key is found by its id, and counted with the request's tenant.
	cs.plain(kindAPIKey, subjectParts{r.TenantID, r.APIKeyID}, r.APIKeyID != "", hashSubject(0, hashOf(r.APIKeyID)))
	service := hashSubject(hashOf(r.Service), 0)
	cs.plain(kindService, subjectParts{owner: r.Service}, r.Service != "", service)
	cs.plain(kindEndpoint, subjectParts{r.Service, r.Endpoint}, r.Endpoint != "", service+hashSubject(0, hashOf(r.Endpoint)))
	return cs.all[:cs.n]
}

func (cs *candidates) plain(k kind, s subjectParts, has bool, hash uint64) {
	if cs.present>>setOf(k, 0, 0)&(1<<(numForms*form(numScopes))-1) == 0 {
		return // nothing about this dimension
	}
	if has {
		cs.add(k, formExact, s, false, hash)
	} else {
		s = subjectParts{} // one counter for all without
	}
	cs.add(k, formAny, s, !has, 0)
}

func (cs *candidates) member(k kind, s subjectParts, tenant uint64) {
	has := s.owner != "" && s.name != ""
	if s.owner != "" {
		// Without a name: the counter shared within the tenant.
		cs.add(k, formTenantWide, s, !has, tenant)
	}
	cs.plain(k, s, has, tenant+hashSubject(0, hashOf(s.name)))
}

func (cs *candidates) add(k kind, f form, s subjectParts, missing bool, hash uint64) {
	c := &cs.all[cs.n]
	c.kind, c.form = k, f
	if c.sets(cs.present) == 0 {
		return
	}
	c.missing, c.subject, c.hash = missing, s, hash
	cs.n++
}
