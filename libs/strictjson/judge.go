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
// name: where a message names that field, or the field is a text of an object
// below the document, of its other fields. judge must take any T.
func Judge[T any, E ~struct{ Field, Message string }](data []byte, into *T, judge func(T) []E) []FieldError {
	found, lost := decode(data, into)
	if len(found) > 0 && !rest(data, into) {
		return found
	}
	decoded := len(found)
	for _, e := range judge(*into) {
		if more := FieldError(e); !named(found[:decoded], more.Field) && !follows(more, lost) {
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

// follows reports what may be no mistake were the lost values known: a message
// names what it depends on, and below the document a text may be what says how
// the rest of its object is meant.
func follows(e FieldError, lost []unread) bool {
	return slices.ContainsFunc(lost, func(l unread) bool {
		dot := strings.LastIndexByte(l.path, '.')
		name, _, _ := strings.Cut(l.path[dot+1:], "[")
		beside := l.text && dot > 0 && within(e.Field, l.path[:dot])
		return beside || within(e.Field, l.path) || slices.Contains(words(e.Message), name)
	})
}

// words are what of a text may be names of fields.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}
