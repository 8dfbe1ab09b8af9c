package rule

import (
	"math"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// kind is a subject's dimension; the order is that of Match's results.
type kind uint8

const (
	kindTenant kind = iota
	kindUser
	kindApplication
	kindAPIKey
	kindService
	kindEndpoint
	numKinds
)

// form is how exact a subject's value is, the most exact first.
type form uint8

const (
	formExact      form = iota
	formTenantWide      // tenant/*
	formAny             // *
	numForms
)

// scopeRank is how narrow a scope is, the narrowest first.
type scopeRank uint8

const (
	scopeEndpoint scopeRank = iota
	scopeService
	scopeGlobal
	numScopes
)

// class is the part of a horizon that is not its length.
type class uint8

const (
	classRate class = iota
	classQuota
	classWallet     // a prepaid quota: no period, one for each metric
	classAny        // an unlimited rule without a limit: every horizon
	classUnreadable // not known
)

// ownCost: the request's own cost is charged.
const ownCost = -1

// Compiled is a rule ready to be matched: what its wording says, shared with
// the rules of the same wording, and what is its own. It is immutable.
type Compiled struct {
	*terms

	ID      string
	Version int64
	// Limit and Burst are 0 where Unlimited.
	Limit, Burst int64
	Unlimited    bool

	priority int32
	rollover *rollover
	value    string // of the subject
	exactKey string // the counter's key where it is the rule's alone
	cost     int64  // ownCost, or what each request is charged
	from     int64  // µs since the epoch, inclusive
	until    int64  // µs since the epoch, exclusive
}

// CountsKeys reports whether the rule's subject is the API key: each has a counter
// of its own.
func (c *Compiled) CountsKeys() bool { return c.group.kind == kindAPIKey }

// AlgorithmName is empty where this build cannot read the algorithm.
func (c *Compiled) AlgorithmName() string {
	if c.Unreadable != "" {
		return ""
	}
	return c.Algorithm.String()
}

// rollover is of the few quotas that carry unused units into their next period.
type rollover struct {
	most  int64
	since time.Time // see limit.Counter
}

// Compile validates, normalizes and compiles a rule. The error is an
// *InvalidError. Nothing of r is kept, and it is not changed.
func Compile(r rules.Rule) (*Compiled, error) {
	k := kindOf(r.Subject.Kind)
	f := formOf(k, r.Subject.Value)
	words := wordingOf(&r, k, f)
	t := allTerms.get(words)
	var found []FieldError
	if t == nil {
		found = Validate(r)
	} else { // its wording has been found good
		found = validateOwn(r)
	}
	if len(found) > 0 {
		return nil, &InvalidError{ID: r.ID, Fields: found}
	}
	if t == nil {
		n := Normalize(r)
		made, err := newTerms(&n, k, f)
		if err != nil {
			return nil, &InvalidError{ID: r.ID, Fields: []FieldError{{Field: "limit", Message: err.Error()}}}
		}
		t = allTerms.put(words.clone(), made)
	}
	c := &Compiled{
		terms: t, Version: r.Version, Unlimited: r.Unlimited, priority: int32(r.Priority),
		cost: ownCost, from: math.MinInt64, until: math.MaxInt64,
	}
	c.setNumbers(&r)
	c.setTexts(&r)
	return c, nil
}

func kindOf(name string) kind {
	for k := range numKinds {
		if kinds[k] == name {
			return k
		}
	}
	return numKinds
}

// formOf reads the value's form; a tenant/* is one of users and applications only.
func formOf(k kind, value string) form {
	switch {
	case value == wildcard:
		return formAny
	case k.member() && strings.HasSuffix(value, "/"+wildcard):
		return formTenantWide
	}
	return formExact
}

// member reports a kind whose values are tenant/name.
func (k kind) member() bool { return k == kindUser || k == kindApplication }

func (c *Compiled) setNumbers(r *rules.Rule) {
	if r.Cost != nil {
		c.cost = *r.Cost
	}
	if r.ValidFrom != nil {
		c.from = r.ValidFrom.UnixMicro()
	}
	if r.ValidUntil != nil {
		c.until = r.ValidUntil.UnixMicro()
	}
	l := r.Limit
	if l == nil || l.Limit == nil {
		return
	}
	c.Limit = *l.Limit
	if c.Algorithm.Bucket() {
		c.Burst = *l.Limit // the default
		if l.Burst != nil {
			c.Burst = *l.Burst
		}
	}
	if l.Rollover != nil && *l.Rollover > 0 {
		c.rollover = &rollover{most: *l.Rollover}
		if l.Since != nil {
			c.rollover.since = *l.Since
		}
	}
}

// setTexts keeps the rule's texts in one allocation: there are a million of them.
func (c *Compiled) setTexts(r *rules.Rule) {
	value := r.Subject.Value
	if c.form != formExact {
		value = strings.TrimSuffix(value, wildcard)
	}
	key := ""
	if c.form == formExact {
		key = exactKey(c.group.kind, value, c.keyTail)
	}
	all := r.ID + value + key
	c.ID, c.value, c.exactKey = all[:len(r.ID)], all[len(r.ID):len(r.ID)+len(value)], all[len(r.ID)+len(value):]
}

// exactKey is the key of a counter that is one rule's alone; those of apiKey
// and endpoint take the request's tenant or service.
func exactKey(k kind, value, tail string) string {
	switch k {
	case kindUser, kindApplication:
		owner, name, _ := strings.Cut(value, "/")
		return counterKey(k, subjectParts{owner, name}, tail)
	case kindTenant, kindService:
		return counterKey(k, subjectParts{owner: value}, tail)
	}
	return ""
}

// Subject returns the rule's subject as it was written.
func (c *Compiled) Subject() rules.Subject {
	value := c.value
	if c.form != formExact {
		value += wildcard
	}
	return rules.Subject{Kind: kinds[c.group.kind], Value: value}
}

// covers reports whether the rule is about s, a subject as requests have it.
func (c *Compiled) covers(s *subjectParts) bool {
	switch {
	case c.form == formAny:
		return true
	case c.form == formTenantWide:
		n := len(s.owner)
		return len(c.value) == n+1 && c.value[:n] == s.owner
	}
	switch c.group.kind {
	case kindUser, kindApplication:
		n := len(s.owner)
		return len(c.value) == n+1+len(s.name) && c.value[n] == '/' && c.value[:n] == s.owner && c.value[n+1:] == s.name
	case kindAPIKey:
		return c.value == s.name
	case kindEndpoint:
		return isEndpoint(c.value, s.owner, s.name)
	}
	return c.value == s.owner
}

// isEndpoint reports whether a value means the service and the pattern, which
// is in canonical spelling; the value's need not be.
func isEndpoint(value, service, pattern string) bool {
	n := len(service)
	if len(value) <= n || value[n] != ' ' || value[:n] != service {
		return false
	}
	written := value[n+1:]
	if written == pattern {
		return true
	}
	method, path, ok := route.Split(written)
	n = len(method)
	return ok && n > 0 && len(pattern) == n+1+len(path) && pattern[n] == ' ' && pattern[:n] == method && pattern[n+1:] == path
}

// Why one rule wins over another of its group, the first that tells them apart.
const (
	becauseScope    = "narrower scope"
	becausePattern  = "more specific pattern"
	becauseSubject  = "more exact subject"
	becausePriority = "higher priority"
	becauseID       = "smaller id"
)

// compare is the order of rules within a group: negative where c wins over d.
func (c *Compiled) compare(d *Compiled) (order int, because string) {
	if c.scopeRank != d.scopeRank {
		return int(c.scopeRank) - int(d.scopeRank), becauseScope
	}
	if c.terms != d.terms {
		if n := route.Compare(c.pattern, d.pattern); n != 0 {
			return n, becausePattern
		}
		if c.form != d.form {
			return int(c.form) - int(d.form), becauseSubject
		}
	}
	if c.priority != d.priority {
		return int(d.priority) - int(c.priority), becausePriority
	}
	return strings.Compare(c.ID, d.ID), becauseID
}

func (c *Compiled) beats(d *Compiled) bool {
	order, _ := c.compare(d)
	return order < 0
}
