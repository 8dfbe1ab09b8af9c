package rule

import (
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// scratch is what a record is read into. Compile keeps nothing of it.
type scratch struct {
	rule                         rules.Rule
	limit                        rules.Limit
	origin                       rules.Origin
	n, burst, rollover, cost, at int64
	countCached                  bool
}

// scanner reads the JSON that records of rules.v1 nearly always are: objects of
// known fields, strings without escapes, whole numbers. It gives up on anything
// else, which is encoding/json's then; a million rules take it seconds, and it
// is what a start waits for.
type scanner struct {
	text string
	at   int
}

// scanRule reads a record into s and reports whether it could. What it reads is
// what encoding/json would; the strings are parts of text.
func scanRule(text string, s *scratch) bool {
	*s = scratch{}
	in := scanner{text: text}
	ok := in.object(func(field string) bool { return in.ruleField(field, s) })
	in.space()
	return ok && in.at == len(text)
}

func (in *scanner) ruleField(field string, s *scratch) bool {
	r := &s.rule
	switch field {
	case "id":
		return in.string(&r.ID)
	case "version":
		return in.integer(&r.Version)
	case "name":
		return in.string(&r.Name)
	case "subject":
		return in.object(func(field string) bool { return in.pair(field, "kind", &r.Subject.Kind, "value", &r.Subject.Value) })
	case "scope":
		return in.object(func(field string) bool {
			return in.pair(field, "service", &r.Scope.Service, "endpoint", &r.Scope.Endpoint)
		})
	case "metric":
		return in.string(&r.Metric)
	case "limit":
		if r.Limit != nil {
			return false
		}
		r.Limit = &s.limit
		return in.object(func(field string) bool { return in.limitField(field, s) })
	case "unlimited":
		return in.boolean(&r.Unlimited)
	case "cost":
		r.Cost = &s.cost
		return in.integer(&s.cost)
	case "countCached":
		r.CountCached = &s.countCached
		return in.boolean(&s.countCached)
	case "mode":
		return in.string(&r.Mode)
	case "onStoreLoss":
		return in.string(&r.OnStoreLoss)
	case "onMissing":
		return in.string(&r.OnMissing)
	case "priority":
		ok := in.integer(&s.at)
		r.Priority = int(s.at)
		return ok
	case "origin":
		r.Origin = &s.origin
		return in.object(func(field string) bool { return in.originField(field, &s.origin) })
	}
	return false
}

func (in *scanner) originField(field string, o *rules.Origin) bool {
	if field == "planVersion" {
		return in.integer(&o.PlanVersion)
	}
	return in.pair(field, "subscription", &o.Subscription, "plan", &o.Plan)
}

func (in *scanner) limitField(field string, s *scratch) bool {
	l := &s.limit
	switch field {
	case "algorithm":
		return in.string(&l.Algorithm)
	case "limit":
		l.Limit = &s.n
		return in.integer(&s.n)
	case "window":
		return in.string(&l.Window)
	case "burst":
		l.Burst = &s.burst
		return in.integer(&s.burst)
	case "kind":
		return in.string(&l.Kind)
	case "period":
		return in.string(&l.Period)
	case "timezone":
		return in.string(&l.Timezone)
	case "anchorDay":
		ok := in.integer(&s.at)
		l.AnchorDay = int(s.at)
		return ok
	case "weekStart":
		return in.string(&l.WeekStart)
	case "rollover":
		l.Rollover = &s.rollover
		return in.integer(&s.rollover)
	case "overdraft":
		return in.string(&l.Overdraft)
	}
	return false
}

func (in *scanner) pair(field, a string, first *string, b string, second *string) bool {
	switch field {
	case a:
		return in.string(first)
	case b:
		return in.string(second)
	}
	return false
}

func (in *scanner) space() {
	for in.at < len(in.text) {
		switch in.text[in.at] {
		case ' ', '\t', '\r', '\n':
			in.at++
		default:
			return
		}
	}
}

// next takes c, after spaces.
func (in *scanner) next(c byte) bool {
	in.space()
	if in.at == len(in.text) || in.text[in.at] != c {
		return false
	}
	in.at++
	return true
}

func (in *scanner) object(value func(field string) bool) bool {
	if !in.next('{') {
		return false
	}
	if in.next('}') {
		return true
	}
	for {
		var field string
		if !in.string(&field) || !in.next(':') || !value(field) {
			return false
		}
		if !in.next(',') {
			return in.next('}')
		}
	}
}

// string reads printable ASCII without escapes.
func (in *scanner) string(into *string) bool {
	if !in.next('"') {
		return false
	}
	for end := in.at; end < len(in.text); end++ {
		switch c := in.text[end]; {
		case c == '"':
			*into = in.text[in.at:end]
			in.at = end + 1
			return true
		case c < ' ' || c > '~' || c == '\\':
			return false
		}
	}
	return false
}

// integer reads up to 18 digits, which fit an int64.
func (in *scanner) integer(into *int64) bool {
	in.space()
	begin, negative := in.at, in.at < len(in.text) && in.text[in.at] == '-'
	if negative {
		in.at++
	}
	digits, n := in.at, int64(0)
	for in.at < len(in.text) && '0' <= in.text[in.at] && in.text[in.at] <= '9' {
		n = n*10 + int64(in.text[in.at]-'0')
		in.at++
	}
	switch length := in.at - digits; {
	case length == 0 || in.at-begin > 18 || length > 1 && in.text[digits] == '0':
		return false
	case in.at < len(in.text) && strings.IndexByte(".eE", in.text[in.at]) >= 0:
		return false
	case negative:
		n = -n
	}
	*into = n
	return true
}

func (in *scanner) boolean(into *bool) bool {
	in.space()
	for _, value := range [2]bool{true, false} {
		if text := strconv.FormatBool(value); strings.HasPrefix(in.text[in.at:], text) {
			*into, in.at = value, in.at+len(text)
			return true
		}
	}
	return false
}
