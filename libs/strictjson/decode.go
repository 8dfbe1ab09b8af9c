package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// FieldError is one mistake. Field is the JSON path of the value, such as
// limit.window or upstreams[1].url; empty is the document itself. Message
// reads on from it and says what would be right.
type FieldError struct{ Field, Message string }

// String joins path and message for people.
func (e FieldError) String() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// maxDepth bounds nesting; the deepest document of ours has four levels.
const maxDepth = 32

// Decode decodes data into the struct that into points to. It returns every
// mistake in the order of the document, and leaves into unspecified unless
// there is none. Fields are those with a json tag; embedded structs are not
// supported. Safe for concurrent use.
func Decode(data []byte, into any) []FieldError {
	found, _ := decode(data, into)
	return found
}

// decode also returns the fields whose values are given and not known.
func decode(data []byte, into any) (found []FieldError, lost []unread) {
	target := reflect.TypeOf(into)
	if target == nil || target.Kind() != reflect.Pointer {
		return []FieldError{{Message: fmt.Sprintf("cannot be decoded into a %T", into)}}, nil
	}
	root, err := parse(data)
	if err != nil {
		return []FieldError{{Message: err.Error()}}, nil
	}
	var c checker
	c.check(root, target.Elem(), "")
	if len(c.found) > 0 {
		return c.found, c.unread
	}
	if err := json.Unmarshal(data, into); err != nil {
		return []FieldError{{Message: err.Error()}}, nil
	}
	return nil, nil
}

// parse reads the whole of data as one JSON value.
func parse(data []byte) (node, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return node{}, errors.New("must be a JSON object, but is empty")
	}
	if at := invalidUTF8(data); at >= 0 {
		return node{}, fmt.Errorf("must be UTF-8, but byte %d is not", at)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return node{}, syntaxError(data, err)
	}
	return newReader(data).node(0)
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// syntaxError turns the decoder's byte offset into a place that an editor shows.
func syntaxError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("is not JSON: %w", err)
	}
	offset := min(max(int(syntax.Offset)-1, 0), len(data))
	before := data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("is not JSON: line %d, column %d: %w", line, column, err)
}
