package api

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// EncodeCursor writes where a page ended, opaque to callers: the kind of list, so that
// one list's cursor is refused by another, and the last key.
func EncodeCursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

// DecodeCursor reads what EncodeCursor wrote; an empty cursor is the start.
func DecodeCursor(list, cursor string) (string, *Problem) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	kind, last, found := strings.Cut(string(raw), "\x00")
	if err != nil || !found || kind != list || last == "" || !ValidText(last) {
		return "", Invalid(FieldError{"query", "cursor", "must be the next of an earlier page of this list"})
	}
	return last, nil
}

// ValidText reports whether Postgres can hold s as text.
func ValidText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
