package rule

import (
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const wildcard = "*"

func (v *validator) subject(r rules.Rule) {
	s := r.Subject
	if !slices.Contains(kinds, s.Kind) {
		v.add("subject.kind", "must be one of %s", strings.Join(kinds, ", "))
		if s.Value == "" || !printable(s.Value) {
			v.add("subject.value", "must be *, or whom the rule is about, in printable characters of UTF-8")
		}
		return
	}
	before := len(v.errs)
	switch {
	case s.Value == wildcard:
	case s.Kind == rules.SubjectUser || s.Kind == rules.SubjectApplication:
		v.memberValue(s)
	case s.Kind == rules.SubjectEndpoint:
		v.endpointValue(s.Value)
	default:
		v.plainValue(s)
	}
	shares := r.OnMissing == rules.MissingShared || r.OnMissing == rules.MissingDeny
	if len(v.errs) == before && shares && !strings.HasSuffix(s.Value, wildcard) {
		v.add("onMissing", "%s needs a subject.value of * or tenant/*: a request without identity is never one exact value; leave it out or use skip", r.OnMissing)
	}
}

func (v *validator) plainValue(s rules.Subject) {
	v.name("subject.value", s.Value)
	if strings.Contains(s.Value, wildcard) {
		v.add("subject.value", "must be * alone or an exact %s without *", s.Kind)
	}
	if s.Kind == rules.SubjectTenant && strings.Contains(s.Value, "/") {
		v.add("subject.value", "must be a tenant without a slash; tenant/name is of kinds user and application")
	}
}

// memberValue checks tenant/name and tenant/*. The tenant ends at the first
// slash; a name may hold more of them.
func (v *validator) memberValue(s rules.Subject) {
	tenant, name, ok := strings.Cut(s.Value, "/")
	if !ok || tenant == "" || name == "" {
		v.add("subject.value", "must be tenant/name, tenant/* or *")
		return
	}
	v.name("subject.value", tenant)
	if name != wildcard {
		v.name("subject.value", name)
	}
	if strings.Contains(tenant, wildcard) || name != wildcard && strings.Contains(name, wildcard) {
		v.add("subject.value", "must be tenant/name, tenant/* or *: * stands alone for a whole name")
	}
}

func (v *validator) endpointValue(value string) {
	if len(value) > maxPattern || !printable(value) {
		v.add("subject.value", "must be at most %d bytes of printable UTF-8", maxPattern)
		return
	}
	var refused error
	for service, pattern := range splits(value) {
		_, err := route.Parse(pattern)
		if err == nil && service != "" {
			return
		}
		refused = err
	}
	if refused != nil {
		v.add("subject.value", "must be * or service METHOD /pattern: %s", refused)
		return
	}
	v.add("subject.value", "must be * or service METHOD /pattern, such as payments GET /pay/{id}")
}

// splits yields the ways to read value as service and pattern. There may be
// more than one, since a service's name may hold spaces and a pattern need not
// have a method; an index that holds a rule under each finds the right one.
func splits(value string) func(func(service, pattern string) bool) {
	return func(yield func(string, string) bool) {
		for i := 1; i < len(value); i++ {
			if value[i] == ' ' && !yield(value[:i], value[i+1:]) {
				return
			}
		}
	}
}
