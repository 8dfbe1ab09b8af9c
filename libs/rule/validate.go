package rule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Bounds of rules.
const (
	maxID       = 128 // characters of an id, and of each part of a subject's value
	maxName     = 256
	maxPattern  = 1024
	maxPriority = 1_000_000
	minWindow   = time.Second
	maxWindow   = 365 * 24 * time.Hour
)

var (
	metricSyntax = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	kinds        = []string{
		rules.SubjectTenant, rules.SubjectUser, rules.SubjectApplication,
		rules.SubjectAPIKey, rules.SubjectService, rules.SubjectEndpoint,
	}
	latestInstant = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Validate returns what is wrong with a rule as REST takes it, nil if nothing
// is. It is pure; fields may be reported in any order, each at least once.
func Validate(r rules.Rule) []FieldError {
	v := &validator{}
	v.wording(r)
	v.own(r)
	return v.errs
}

// validateOwn judges what of a rule its wording does not say: whose it is, and
// its numbers.
func validateOwn(r rules.Rule) []FieldError {
	v := &validator{}
	v.own(r)
	return v.errs
}

// wording judges what rules of one wording share.
func (v *validator) wording(r rules.Rule) {
	v.scope(r.Scope)
	if !metricSyntax.MatchString(r.Metric) {
		v.add("metric", metricMessage)
	}
	v.limit(r)
	v.choices(r)
	v.thresholds(r)
	v.refundOn(r.RefundOn)
}

func (v *validator) own(r rules.Rule) {
	v.name("id", r.ID)
	switch r.ID {
	case ".", "..":
		v.add("id", "must not be a dot segment: it could not stand in a URL")
	case "/": // net/http takes the segment %2F for the path's end
		v.add("id", "must not be a slash alone: it could not stand in a URL")
	}
	if r.Name != "" && (utf8.RuneCountInString(r.Name) > maxName || !printable(r.Name)) {
		v.add("name", "must be at most %d printable characters", maxName)
	}
	v.subject(r)
	v.amounts(r)
	if r.Cost != nil && (*r.Cost < 0 || *r.Cost > limit.MaxInteger) {
		v.add("cost", "must be 0 to %d", int64(limit.MaxInteger))
	}
	if r.Cost != nil && *r.Cost == 0 && len(r.RefundOn) > 0 {
		v.add("refundOn", "belongs to a rule that charges; leave it out where cost is 0")
	}
	if r.Priority < -maxPriority || r.Priority > maxPriority {
		v.add("priority", "must be %d to %d", -maxPriority, maxPriority)
	}
	v.validity(r.ValidFrom, r.ValidUntil)
}

const metricMessage = "must be 1 to 64 of letters, digits, dot, underscore and hyphen"

type validator struct{ errs []FieldError }

func (v *validator) add(field, format string, args ...any) {
	v.errs = append(v.errs, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// name checks an id: any printable UTF-8, since keys, headers and URLs escape
// what they must.
func (v *validator) name(field, s string) {
	if n := utf8.RuneCountInString(s); n < 1 || n > maxID || !printable(s) {
		v.add(field, "must be 1 to %d printable characters of UTF-8", maxID)
	}
}

func printable(s string) bool {
	if plain(s) {
		return true
	}
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// plain reports printable ASCII, which nearly every name is.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// notYet is how features of the design that are not built are refused.
func (v *validator) notYet(field, value, available string) {
	v.add(field, "%q is not available yet; available: %s", value, available)
}

// choice checks a field with a closed set of values; "" is the default.
func (v *validator) choice(field, value string, now, later []string) {
	switch {
	case value == "" || slices.Contains(now, value):
	case slices.Contains(later, value):
		v.notYet(field, value, strings.Join(now, ", "))
	default:
		v.add(field, "must be one of %s", strings.Join(now, ", "))
	}
}

func (v *validator) choices(r rules.Rule) {
	v.choice("mode", r.Mode, []string{rules.ModeEnforce, rules.ModeShadow, rules.ModeOff}, nil)
	v.choice("onStoreLoss", r.OnStoreLoss,
		[]string{rules.StoreLossOpen, rules.StoreLossClosed, rules.StoreLossLocal}, nil)
	v.choice("onMissing", r.OnMissing,
		[]string{rules.MissingSkip, rules.MissingShared, rules.MissingDeny}, nil)
}

func (v *validator) scope(s rules.Scope) {
	if s.Service != "" {
		v.name("scope.service", s.Service)
	}
	if s.Endpoint == "" {
		return
	}
	if s.Service == "" {
		v.add("scope.service", "must name the service that scope.endpoint belongs to")
	}
	v.pattern("scope.endpoint", s.Endpoint)
}

func (v *validator) pattern(field, pattern string) {
	if len(pattern) > maxPattern || !printable(pattern) {
		v.add(field, "must be at most %d bytes of printable UTF-8", maxPattern)
		return
	}
	if _, err := route.Parse(pattern); err != nil {
		v.add(field, "must be METHOD /path in the syntax of net/http.ServeMux: %s", err)
	}
}

func (v *validator) validity(from, until *time.Time) {
	for _, f := range []struct {
		field string
		at    *time.Time
	}{{"validFrom", from}, {"validUntil", until}} {
		if f.at != nil && (f.at.Year() < 1970 || !f.at.Before(latestInstant)) {
			v.add(f.field, "must be an RFC 3339 instant of the years 1970 to 9999")
		}
	}
	if from != nil && until != nil && !until.After(*from) {
		v.add("validUntil", "must be after validFrom")
	}
}
