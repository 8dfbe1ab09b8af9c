package route

import (
	"errors"
	"fmt"
	"strings"
)

// Parse parses "METHOD /path", where METHOD and the space may be left out: the
// syntax of net/http.ServeMux without hosts. The error says what would be
// right. A pattern that no clean path could match is an error.
func Parse(pattern string) (Pattern, error) {
	if pattern == "" {
		return Pattern{}, errors.New("empty pattern: write METHOD /path, such as GET /pay/{id}")
	}
	method, path, found := Split(pattern)
	if found && !isToken(method) {
		return Pattern{}, fmt.Errorf("method %q is not an HTTP method", method)
	}
	if path == "" || path[0] != '/' {
		return Pattern{}, fmt.Errorf("path %q does not begin with a slash; hosts are not part of a pattern", path)
	}
	segs, err := parsePath(path)
	if err != nil {
		return Pattern{}, err
	}
	text := path
	if method != "" {
		text = method + " " + path
	}
	return Pattern{method: method, text: text, segs: segs, order: orderOf(method, text, segs)}, nil
}

// Split cuts a pattern into method and path; found is false without a method.
// It does not check either.
func Split(pattern string) (method, path string, found bool) {
	if i := strings.IndexAny(pattern, " \t"); i >= 0 && pattern[0] != '/' {
		return pattern[:i], strings.TrimLeft(pattern[i+1:], " \t"), true
	}
	return "", pattern, false
}

func parsePath(path string) ([]segment, error) {
	var (
		segs  []segment
		names = map[string]bool{}
	)
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		last := i == len(parts)-1
		s, name, err := parseSegment(part, last)
		if err != nil {
			return nil, err
		}
		if name != "" {
			if names[name] {
				return nil, fmt.Errorf("wildcard name %q is used twice", name)
			}
			names[name] = true
		}
		segs = append(segs, s)
	}
	return segs, nil
}

func parseSegment(part string, last bool) (s segment, name string, err error) {
	if !strings.ContainsAny(part, "{}") {
		s, err := parseLiteral(part, last)
		return s, "", err
	}
	if part[0] != '{' || part[len(part)-1] != '}' {
		return segment{}, "", fmt.Errorf("segment %q: a wildcard must be a whole segment, such as {id}", part)
	}
	name = part[1 : len(part)-1]
	if name == "$" {
		if !last {
			return segment{}, "", errors.New("{$} must be at the end")
		}
		return segment{kind: literal}, "", nil
	}
	kind := single
	if n, ok := strings.CutSuffix(name, "..."); ok {
		if !last {
			return segment{}, "", fmt.Errorf("{%s} must be at the end", name)
		}
		name, kind = n, rest
	}
	if !isIdentifier(name) {
		return segment{}, "", fmt.Errorf("wildcard name %q is not an identifier", name)
	}
	return segment{kind: kind}, name, nil
}

func parseLiteral(part string, last bool) (segment, error) {
	switch part {
	case "":
		if last {
			return segment{kind: rest}, nil // the trailing slash: everything below
		}
		return segment{}, errors.New("two slashes in a row never match: paths are cleaned first")
	case ".", "..":
		return segment{}, fmt.Errorf("segment %q never matches: paths are cleaned first", part)
	}
	text, err := unescape(part)
	if err != nil {
		return segment{}, fmt.Errorf("segment %q: %w", part, err)
	}
	if text == "." || text == ".." {
		return segment{}, fmt.Errorf("segment %q never matches: paths are cleaned first", part)
	}
	return segment{kind: literal, text: text}, nil
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return "", fmt.Errorf("%w at byte %d", ErrBadEscape, i)
			}
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// isToken: RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') &&
			strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isIdentifier(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
