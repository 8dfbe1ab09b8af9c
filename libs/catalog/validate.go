package catalog

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// Bounds of a service.
const (
	MaxNameLength   = 128  // characters
	MaxPrefixLength = 512  // bytes; it is the key of an index in Postgres
	MaxEndpoints    = 5000 // each request is matched against them
	MaxUpstreams    = 64   // each gateway keeps connections to all of them
	MaxWeight       = 1000 // shares; finer ones need no more
	// OwnPrefix begins the paths that the gate answers itself; no service has them,
	// one with the prefix / neither.
	OwnPrefix = "/.sluice/"

	MaxCost         = 1 << 53 // what Redis' Lua counts exactly
	MaxAboutLength  = 1024    // characters
	MaxHeaderLength = 64      // bytes
)

// FieldError is one mistake: the JSON path of the field, such as
// upstreams[0].url, and what would be right.
type FieldError struct{ Field, Message string }

// Validate returns every mistake of the service, none when it is valid.
// Whether its prefix is free only the control plane knows.
func Validate(s catalog.Service) []FieldError {
	var v validation
	v.name(s.Name)
	v.prefix(s.Prefix)
	v.identity(s)
	v.costHeader(s.CostHeader)
	v.maxCost(s)
	v.cache("cache.", s.Cache)
	v.upstreams(s.Upstreams)
	v.endpoints(s.Endpoints, s.Prefix)
	return v.found
}

type validation struct{ found []FieldError }

func (v *validation) add(field, format string, args ...any) {
	v.found = append(v.found, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// name takes what a rule's scope.service takes, so that each can name the other.
func (v *validation) name(name string) {
	switch n := utf8.RuneCountInString(name); {
	case n < 1 || n > MaxNameLength:
		v.add("name", "must have 1 to %d characters, not %d", MaxNameLength, n)
	case !printable(name):
		v.add("name", "must be printable UTF-8")
	case name == "." || name == "..":
		v.add("name", "must not be a dot segment: it could not stand in a URL")
	case name == "/": // net/http takes the segment %2F for the path's end
		v.add("name", "must not be a slash alone: it could not stand in a URL")
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (v *validation) prefix(prefix string) {
	switch {
	case !strings.HasPrefix(prefix, "/") || !strings.HasSuffix(prefix, "/"):
		v.add("prefix", "must begin and end with /, such as /payments/")
		return
	case len(prefix) > MaxPrefixLength:
		v.add("prefix", "must have at most %d bytes, not %d", MaxPrefixLength, len(prefix))
		return
	case strings.ContainsAny(prefix, "{}?#"):
		v.add("prefix", "must be plain path segments, without { } ? or #")
		return
	}
	switch clean, err := route.CleanPath(prefix); {
	case err != nil:
		v.add("prefix", "must be a path: %v", err)
	case clean != prefix:
		v.add("prefix", "must be a clean path; that would be %s", clean)
	case strings.HasPrefix(prefix, OwnPrefix):
		v.add("prefix", "must not begin with %s: paths there are the gate's own", OwnPrefix)
	}
}

func (v *validation) endpoints(endpoints []catalog.Endpoint, prefix string) {
	if len(endpoints) > MaxEndpoints {
		v.add("endpoints", "must be at most %d, not %d", MaxEndpoints, len(endpoints))
		return
	}
	seen := make(map[string]bool, len(endpoints))
	for i, e := range endpoints {
		at := fmt.Sprintf("endpoints[%d].", i)
		v.pattern(at+"pattern", e.Pattern, prefix)
		if seen[e.Pattern] {
			v.add(at+"pattern", "appears twice: %s", e.Pattern)
		}
		seen[e.Pattern] = true
		if e.Cost != nil && (*e.Cost < 0 || *e.Cost > MaxCost) {
			v.add(at+"cost", "must be from 0 to 2^53, not %d", *e.Cost)
		}
		v.cache(at+"cache.", e.Cache)
		if utf8.RuneCountInString(e.About) > MaxAboutLength {
			v.add(at+"about", "must have at most %d characters", MaxAboutLength)
		}
	}
}

func (v *validation) pattern(field, pattern, prefix string) {
	if _, err := route.Parse(pattern); err != nil {
		v.add(field, "must be METHOD /path in the syntax of net/http.ServeMux: %v", err)
		return
	}
	path := pattern
	if i := strings.IndexByte(pattern, '/'); i > 0 {
		path = pattern[i:]
	}
	if !strings.HasPrefix(path, prefix) {
		v.add(field, "must lie under the service's prefix %s", prefix)
	}
}
