package client

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// kind is what apply, list, get and delete need to know of rules or services.
type kind[T any] struct {
	noun, path string
	key        func(*T) *string
	version    func(*T) *int64
	validate   func(T) []strictjson.FieldError
	normalize  func(T) T
	// unknown has a better message for a field that is not one, or is nil.
	unknown func(field string) (message string, ok bool)
	// owned tells what is not the files' to delete, or is nil: rules that a
	// subscription wrote.
	owned func(T) bool
	// own is the field, besides the key, that no two may have alike; nil: none.
	own func(T) (field, value string)
	// warns: the control plane has warnings about documents of this kind.
	warns   bool
	columns []string
	row     func(T) []string
	// filters are flags of list, each a query parameter of the same name.
	filters map[string]string
}

func (k kind[T]) item(id string) string { return k.path + "/" + url.PathEscape(id) }

// one is the noun with its article.
func (k kind[T]) one() string {
	if strings.ContainsAny(k.noun[:1], "aeiou") {
		return "an " + k.noun
	}
	return "a " + k.noun
}

// decode turns a document of a file into what would be in force, or returns
// every mistake in it.
func (k kind[T]) decode(d document) (T, []strictjson.FieldError) {
	var v T
	mistakes := strictjson.Judge(d.data, &v, k.validate)
	for i, e := range mistakes {
		if k.unknown == nil {
			break
		}
		if message, ok := k.unknown(e.Field); ok {
			mistakes[i].Message = message
		}
	}
	if len(mistakes) > 0 {
		d.sortByLine(mistakes)
		return v, mistakes
	}
	return k.normalize(v), nil
}

// ruleErrors are those of libs/rule as those of a document.
func ruleErrors(found []rule.FieldError) []strictjson.FieldError {
	out := make([]strictjson.FieldError, len(found))
	for i, e := range found {
		out[i] = strictjson.FieldError{Field: e.Field, Message: e.Message}
	}
	return out
}

// fieldErrors are another library's.
func fieldErrors[E ~struct{ Field, Message string }](found []E) []strictjson.FieldError {
	out := make([]strictjson.FieldError, len(found))
	for i, e := range found {
		out[i] = strictjson.FieldError(e)
	}
	return out
}

var ruleKind = kind[rules.Rule]{
	noun: "rule", path: "/v1/rules",
	key:      func(r *rules.Rule) *string { return &r.ID },
	version:  func(r *rules.Rule) *int64 { return &r.Version },
	validate: func(r rules.Rule) []strictjson.FieldError { return ruleErrors(rule.Validate(r)) },
	// What only the control plane writes is no difference to a file.
	normalize: func(r rules.Rule) rules.Rule { return rule.Strip(rule.Normalize(r)) },
	owned:     func(r rules.Rule) bool { return r.Origin != nil },
	warns:     true,
	columns:   []string{"ID", "SUBJECT", "SCOPE", "METRIC", "LIMIT", "MODE", "VERSION"},
	row:       ruleRow,
	filters: map[string]string{
		"service": "only rules whose scope names this service",
		"tenant":  "only rules whose subject is this tenant, or a user or application of it",
		"metric":  "only rules that count this metric",
	},
}

func ruleRow(r rules.Rule) []string {
	scope := strings.TrimSpace(r.Scope.Service + " " + r.Scope.Endpoint)
	return []string{r.ID, r.Subject.Kind + "=" + r.Subject.Value, rest.FirstOf(scope, "everywhere"), r.Metric, limitText(r), r.Mode, fmt.Sprint(r.Version)}
}

func limitText(r rules.Rule) string {
	l := r.Limit
	switch {
	case !r.Unlimited && l != nil && l.Kind == rules.QuotaPrepaid:
		return l.Algorithm + " prepaid" // its limit is the tenant's wallet
	case r.Unlimited || l == nil || l.Limit == nil:
		return "unlimited"
	}
	text := fmt.Sprintf("%s %d/%s", l.Algorithm, *l.Limit, rest.FirstOf(l.Window, l.Period))
	if l.Timezone != "" && l.Timezone != "UTC" { // the default is not said
		text += " " + l.Timezone
	}
	if l.Burst != nil && *l.Burst != *l.Limit {
		text += fmt.Sprintf(" burst %d", *l.Burst)
	}
	return text
}

var serviceKind = kind[catalog.Service]{
	noun: "service", path: "/v1/services",
	key:       func(s *catalog.Service) *string { return &s.Name },
	version:   func(s *catalog.Service) *int64 { return &s.Version },
	validate:  func(s catalog.Service) []strictjson.FieldError { return fieldErrors(libcatalog.Validate(s)) },
	normalize: libcatalog.Normalize,
	own:       func(s catalog.Service) (string, string) { return "prefix", s.Prefix },
	columns:   []string{"NAME", "PREFIX", "UPSTREAMS", "ENDPOINTS", "VERSION"},
	row: func(s catalog.Service) []string {
		urls := make([]string, len(s.Upstreams))
		for i, u := range s.Upstreams {
			urls[i] = u.URL
		}
		return []string{s.Name, s.Prefix, strings.Join(urls, " "), fmt.Sprint(len(s.Endpoints)), fmt.Sprint(s.Version)}
	},
}
