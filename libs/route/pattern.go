package route

import (
	"strings"
)

// segment kinds, the more specific first.
const (
	literal byte = '0' + iota // one segment with these bytes
	single                    // {name}: any one segment
	rest                      // {name...} or a trailing slash: what is left
)

type segment struct {
	kind byte
	text string // of a literal, unescaped; "" is the empty last segment of {$}
}

// Pattern is a parsed pattern. The zero value matches nothing. It is immutable
// and safe for concurrent use.
type Pattern struct {
	method string // "" is any
	text   string
	order  string
	segs   []segment
}

// String returns the pattern's canonical text, METHOD /path with one space.
// Two patterns with the same text are the same pattern.
func (p Pattern) String() string { return p.text }

// Method returns the method, or "" for any. GET matches HEAD as well.
func (p Pattern) Method() string { return p.method }

// Path returns the pattern without its method.
func (p Pattern) Path() string { return strings.TrimPrefix(p.text, p.method+" ") }

// IsZero reports the zero Pattern.
func (p Pattern) IsZero() bool { return p.text == "" }

// Matches reports whether the pattern matches a request. cleanPath is what
// CleanPath returned; other spellings match by accident only. It does not
// allocate.
func (p Pattern) Matches(method, cleanPath string) bool {
	if p.text == "" || !p.matchesMethod(method) {
		return false
	}
	left := cleanPath
	for _, s := range p.segs {
		if left == "" || left[0] != '/' {
			return false
		}
		if s.kind == rest {
			return true
		}
		left = left[1:]
		end := strings.IndexByte(left, '/')
		if end < 0 {
			end = len(left)
		}
		seg := left[:end]
		if s.kind == single {
			if seg == "" {
				return false
			}
		} else if !equalUnescaped(seg, s.text) {
			return false
		}
		left = left[end:]
	}
	return left == ""
}

func (p Pattern) matchesMethod(method string) bool {
	return p.method == "" || p.method == method || p.method == "GET" && method == "HEAD"
}

// equalUnescaped reports whether the escaped segment says text.
func equalUnescaped(escaped, text string) bool {
	for i := 0; i < len(escaped); i++ {
		c := escaped[i]
		if c == '%' && i+2 < len(escaped) {
			c = byte(unhex(escaped[i+1])<<4 | unhex(escaped[i+2]))
			i += 2
		}
		if text == "" || text[0] != c {
			return false
		}
		text = text[1:]
	}
	return text == ""
}

// Compare orders patterns, the more specific first: negative when a comes
// before b, 0 only for the same pattern. Where the requests of one are a
// strict subset of the other's, it comes first; otherwise paths are compared
// segment by segment, a literal before {name} before the rest, then the longer
// path, then HEAD, another method, any method, then the text.
func Compare(a, b Pattern) int { return strings.Compare(a.order, b.order) }

// MoreSpecific reports Compare(p, q) < 0.
func (p Pattern) MoreSpecific(q Pattern) bool { return Compare(p, q) < 0 }

func orderOf(method, text string, segs []segment) string {
	var b strings.Builder
	for _, s := range segs {
		b.WriteByte(s.kind)
	}
	b.WriteByte('9') // above every kind: the longer path first
	switch method {
	case "HEAD":
		b.WriteByte('0') // a subset of GET
	case "":
		b.WriteByte('2')
	default:
		b.WriteByte('1')
	}
	b.WriteString(text)
	return b.String()
}
