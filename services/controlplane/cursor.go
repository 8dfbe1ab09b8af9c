package controlplane

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// A cursor is where a page ended, opaque to callers: the kind of list, so that
// one list's cursor is refused by another, and the last key.

func encodeCursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

// decodeCursor reads what encodeCursor wrote; an empty cursor is the start.
func decodeCursor(list, cursor string) (string, *Problem) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	kind, last, found := strings.Cut(string(raw), "\x00")
	if err != nil || !found || kind != list || last == "" || !validText(last) {
		return "", invalid(FieldError{"query", "cursor", "must be the next of an earlier page of this list"})
	}
	return last, nil
}

// validText reports whether Postgres can hold s as text.
func validText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
