package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// node is a parsed value that keeps what encoding/json's map would lose: the
// order of members and the members that appear twice.
type node struct {
	// scalar is a string, json.Number, bool or nil; unused for the other kinds.
	scalar any
	// halfPair: a string whose escapes are half of a surrogate pair, for which
	// encoding/json puts U+FFFD.
	halfPair bool
	kind     kind
	members  []member
	items    []node
}

type member struct {
	name  string
	value node
}

type kind uint8

const (
	scalarKind kind = iota
	objectKind
	arrayKind
)

// reader reads nodes of data, which was found to be valid JSON before: an
// error of its is only ever the depth.
type reader struct {
	data   []byte
	tokens *json.Decoder // of data
}

func newReader(data []byte) *reader {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return &reader{data: data, tokens: d}
}

func (r *reader) node(depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	from := r.tokens.InputOffset()
	token, err := r.tokens.Token()
	if err != nil {
		return node{}, fmt.Errorf("is not JSON: %w", err)
	}
	switch token {
	case json.Delim('{'):
		return r.object(depth)
	case json.Delim('['):
		return r.array(depth)
	}
	n := node{scalar: token}
	if _, text := token.(string); text {
		n.halfPair = holdsHalfPair(r.data[from:r.tokens.InputOffset()])
	}
	return n, nil
}

func (r *reader) object(depth int) (node, error) {
	n := node{kind: objectKind}
	for r.tokens.More() {
		name, err := r.tokens.Token()
		if err != nil {
			return node{}, fmt.Errorf("is not JSON: %w", err)
		}
		value, err := r.node(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.members = append(n.members, member{name: name.(string), value: value})
	}
	_, err := r.tokens.Token()
	return n, err
}

func (r *reader) array(depth int) (node, error) {
	n := node{kind: arrayKind}
	for r.tokens.More() {
		item, err := r.node(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	_, err := r.tokens.Token()
	return n, err
}

// describe names what a value is, for "must be a string, not …".
func (n node) describe() string {
	switch {
	case n.kind == objectKind:
		return "an object"
	case n.kind == arrayKind:
		return "an array"
	}
	switch v := n.scalar.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "true or false"
	default:
		return fmt.Sprintf("the number %.40v", v)
	}
}
