package strictjson

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
)

// Judge decodes data as Decode does and has judge say what is wrong with what
// it means. Where data itself holds mistakes, judge is asked of the rest of it,
// so that a caller hears of all at once; left out is what judge says of a
// field, or of a part of one, that has a mistake already, and what may follow
// from a value that is not known, since it could not be read or has a misspelt
// name: of fields beside that one, and where it is named. judge must take any T.
func Judge[T any, E ~struct{ Field, Message string }](data []byte, into *T, judge func(T) []E) []FieldError {
	found, unread := decode(data, into)
	if len(found) > 0 && !rest(data, into) {
		return found
	}
	decoded := len(found)
	for _, e := range judge(*into) {
		if more := FieldError(e); !named(found[:decoded], more.Field) && !follows(more, unread) {
			found = append(found, more)
		}
	}
	return found
}

// rest decodes what of data can be, and reports whether that is all but values
// of the wrong type: another mistake ends the decoding half-way, and what is
// missing after it would be told as a mistake of its own.
func rest[T any](data []byte, into *T) bool {
	var none T
	*into = none
	var mistyped *json.UnmarshalTypeError
	err := json.Unmarshal(data, into)
	return err == nil || errors.As(err, &mistyped) && mistyped.Field != ""
}

// named reports a field that has a mistake, or that lies in one that has.
func named(found []FieldError, field string) bool {
	return slices.ContainsFunc(found, func(e FieldError) bool { return within(field, e.Field) })
}

// within reports that a field is outer, or a part of it.
func within(field, outer string) bool {
	below, ok := strings.CutPrefix(field, outer)
	return ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// follows reports what may be no mistake were the unread values known. Fields
// of one object below the document depend on each other; those of the document
// itself are many and mostly do not, but a message names what it depends on.
func follows(e FieldError, unread []string) bool {
	return slices.ContainsFunc(unread, func(path string) bool {
		dot := strings.LastIndexByte(path, '.')
		name, _, _ := strings.Cut(path[dot+1:], "[")
		return within(e.Field, path) || dot > 0 && within(e.Field, path[:dot]) || slices.Contains(words(e.Message), name)
	})
}

// words are what of a text may be names of fields.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}
