package strictjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// holdsHalfPair reports whether a valid string literal has an escape that is
// half of a surrogate pair without its other half (RFC 8259, section 8.2).
func holdsHalfPair(literal []byte) bool {
	for {
		at := bytes.IndexByte(literal, '\\')
		if at < 0 {
			return false
		}
		literal = literal[at:]
		first, escaped := codeUnit(literal)
		switch {
		case !escaped:
			literal = literal[2:] // \n and its kind
		case !utf16.IsSurrogate(first):
			literal = literal[6:]
		default:
			second, _ := codeUnit(literal[6:])
			if utf16.DecodeRune(first, second) == '\uFFFD' {
				return true
			}
			literal = literal[12:]
		}
	}
}

// codeUnit reads the \uXXXX that text begins with, if it does.
func codeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
