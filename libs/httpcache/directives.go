package httpcache

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// directives are those of a Cache-Control field, names in lower case, the first
// of each name. Values are without quotes; a directive without a value has "".
type directives []directive

type directive struct{ name, value string }

// cacheControl reads the Cache-Control field of h (RFC 9111, section 5.2). The
// grammar has no space around =: a directive with one is another, or malformed.
func cacheControl(h http.Header) directives {
	var all directives
	for _, line := range h["Cache-Control"] {
		for line != "" {
			var d directive
			d, line = nextDirective(line)
			if d.name != "" && !all.has(d.name) {
				all = append(all, d)
			}
		}
	}
	return all
}

// nextDirective reads up to a comma that is not quoted.
func nextDirective(s string) (d directive, rest string) {
	end := strings.IndexAny(s, `,="`)
	if end < 0 || s[end] == ',' {
		name, rest, _ := strings.Cut(s, ",")
		return directive{name: strings.ToLower(strings.Trim(name, " \t"))}, rest
	}
	if s[end] == '"' { // a directive does not begin with a quote
		_, rest = nextValue(s)
		return directive{}, rest
	}
	d.name = strings.ToLower(strings.TrimLeft(s[:end], " \t"))
	d.value, rest = nextValue(s[end+1:])
	return d, rest
}

// nextValue reads a token or a quoted string, and the comma behind it.
func nextValue(s string) (value, rest string) {
	quoted := strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(quoted, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return strings.TrimRight(value, " \t"), rest
	}
	var b strings.Builder
	for i := 1; i < len(quoted); i++ {
		switch quoted[i] {
		case '\\':
			if i++; i < len(quoted) {
				b.WriteByte(quoted[i])
			}
		case '"':
			_, rest, _ = strings.Cut(quoted[i+1:], ",")
			return b.String(), rest
		default:
			b.WriteByte(quoted[i])
		}
	}
	return b.String(), ""
}

func (d directives) get(name string) (value string, ok bool) {
	for i := range d {
		if d[i].name == name {
			return d[i].value, true
		}
	}
	return "", false
}

// unqualified reports a directive about the whole response: no-cache and private
// may instead name some of its fields.
func (d directives) unqualified(name string) bool {
	value, ok := d.get(name)
	return ok && value == ""
}

// fields are those that no-cache and private name, in canonical form.
func (d directives) fields() []string {
	var all []string
	for _, name := range [...]string{"no-cache", "private"} {
		value, _ := d.get(name)
		for field := range strings.SplitSeq(value, ",") {
			if field = strings.Trim(field, " \t"); field != "" {
				all = append(all, http.CanonicalHeaderKey(field))
			}
		}
	}
	return all
}

func (d directives) has(name string) bool {
	_, ok := d.get(name)
	return ok
}

// seconds is the directive's delta-seconds. A malformed value counts as 0: it
// makes nothing fresh (RFC 9111, section 4.2.1).
func (d directives) seconds(name string) (t time.Duration, ok bool) {
	value, ok := d.get(name)
	if !ok {
		return 0, false
	}
	t, _ = deltaSeconds(value)
	return t, true
}

// deltaSeconds reads a number of seconds (RFC 9111, section 1.2.2), at most 2^31.
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), math.MaxInt32)
	}
	return time.Duration(n) * time.Second, true
}

func pragmaNoCache(h http.Header) bool {
	for _, line := range h["Pragma"] {
		for value := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(value, " \t"), "no-cache") {
				return true
			}
		}
	}
	return false
}
