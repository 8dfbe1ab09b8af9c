package route

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of CleanPath.
var (
	ErrNotRooted = errors.New("path does not begin with a slash")
	ErrBadEscape = errors.New("percent sign without two hexadecimal digits")
)

// CleanPath returns the one spelling of an escaped path (RFC 3986, section 6):
// dot segments resolved as its section 5.2.4 says, but never above the root;
// runs of slashes made one; escapes of unreserved characters resolved, other
// escapes in capitals; what must be escaped, escaped. %2F stays: it is part of
// a segment, not a border between two. A trailing slash stays.
//
// A path that is clean already is returned as it is, without an allocation.
func CleanPath(escapedPath string) (clean string, err error) {
	if escapedPath == "" || escapedPath[0] != '/' {
		return "", ErrNotRooted
	}
	if isClean(escapedPath) {
		return escapedPath, nil
	}
	plain, err := unescapeNeedless(escapedPath)
	if err != nil {
		return "", err
	}
	return resolveDots(plain), nil
}

// isClean reports paths of plain characters that need no work; it may say
// false of a clean path, never true of an unclean one.
func isClean(p string) bool {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '/':
			// A segment that begins with a dot is left to the thorough way.
			if i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.') {
				return false
			}
		case !isPlain(c):
			return false
		}
	}
	return true
}

const upperHex = "0123456789ABCDEF"

func unescapeNeedless(p string) (string, error) {
	var b strings.Builder
	b.Grow(len(p))
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '%' {
			if i+2 >= len(p) || unhex(p[i+1]) < 0 || unhex(p[i+2]) < 0 {
				return "", fmt.Errorf("%w at byte %d", ErrBadEscape, i)
			}
			c = byte(unhex(p[i+1])<<4 | unhex(p[i+2]))
			i += 2
			if isUnreserved(c) {
				b.WriteByte(c)
				continue
			}
		} else if c == '/' || isPlain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String(), nil
}

func resolveDots(p string) string {
	out := make([]byte, 0, len(p))
	for rest := p; rest != ""; {
		rest = strings.TrimLeft(rest, "/")
		seg := rest
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			seg = rest[:i]
		}
		rest = rest[len(seg):]
		switch seg {
		case "", ".":
		case "..":
			for n := len(out); n > 0; {
				n--
				if out[n] == '/' {
					out = out[:n]
					break
				}
			}
		default:
			out = append(append(out, '/'), seg...)
			if rest == "" {
				return string(out)
			}
		}
	}
	// The path ended in a slash or a dot segment, which name a folder.
	return string(append(out, '/'))
}

// isUnreserved: RFC 3986, section 2.3.
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// isPlain reports what may stand unescaped in a segment: pchar of RFC 3986,
// section 3.3, without escapes.
func isPlain(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!$&'()*+,;=:@", c) >= 0
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
