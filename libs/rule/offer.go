package rule

// offer lets every rule that may cover the request compete.
func (t *table) offer(m *matcher) {
	r := m.req
	tenant := r.TenantID != ""
	t.offerKind(m, kindTenant, subjectParts{owner: r.TenantID}, tenant)
	t.offerMember(m, kindUser, r.UserID)
	t.offerMember(m, kindApplication, r.ApplicationID)
	t.offerAPIKey(m)
	t.offerKind(m, kindService, subjectParts{owner: r.Service}, r.Service != "")
	t.offerKind(m, kindEndpoint, subjectParts{owner: r.Service, name: r.Endpoint}, r.Endpoint != "")
}

// offerKind is for kinds whose exact value is their subject's parts.
func (t *table) offerKind(m *matcher, k kind, s subjectParts, has bool) {
	if has {
		m.considerAll(t.bucket(bucketKey{kind: k, owner: s.owner, name: s.name}), s, false)
	}
	t.offerWild(m, k, s, has)
}

// offerMember is for what belongs to a tenant and has a name in it.
func (t *table) offerMember(m *matcher, k kind, name string) {
	s := subjectParts{owner: m.req.TenantID, name: name}
	has := s.owner != "" && name != ""
	if has {
		m.considerAll(t.bucket(bucketKey{kind: k, owner: s.owner, name: name}), s, false)
	}
	if s.owner != "" {
		// Without a name: the counter shared within the tenant.
		m.considerAll(t.bucket(bucketKey{kind: k, owner: s.owner, wide: true}), s, !has)
	}
	t.offerWild(m, k, s, has)
}

// offerAPIKey: a key is found by its id, and counted with the request's tenant.
func (t *table) offerAPIKey(m *matcher) {
	s := subjectParts{owner: m.req.TenantID, name: m.req.APIKeyID}
	has := s.name != ""
	if has {
		m.considerAll(t.bucket(bucketKey{kind: kindAPIKey, owner: s.name}), s, false)
	}
	t.offerWild(m, kindAPIKey, s, has)
}

func (t *table) offerWild(m *matcher, k kind, s subjectParts, has bool) {
	if !has {
		s = subjectParts{} // one counter for all without
	}
	wild := t.wild.Load()
	m.considerAll(wild.global[k], s, !has)
	if lists := wild.byService[m.req.Service]; lists != nil {
		m.considerAll(lists[k], s, !has)
	}
}
