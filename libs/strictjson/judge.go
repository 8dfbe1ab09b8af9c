package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
)

// Judge decodes data as Decode does and has judge say what is wrong with what
// it means. Where data itself holds mistakes, judge is asked of the rest of it,
// so that a caller hears of all at once; what judge says of a field, or of a
// part of one, that has a mistake already is left out. judge must take any T.
func Judge[T any, E ~struct{ Field, Message string }](data []byte, into *T, judge func(T) []E) []FieldError {
	found := Decode(data, into)
	if len(found) > 0 && !rest(data, into) {
		return found
	}
	decoded := len(found)
	for _, e := range judge(*into) {
		if more := FieldError(e); !named(found[:decoded], more.Field) {
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
	for _, e := range found {
		if below, ok := strings.CutPrefix(field, e.Field); ok && (below == "" || below[0] == '.' || below[0] == '[') {
			return true
		}
	}
	return false
}
