package strictjson

import (
	"encoding/json"
	"fmt"
)

// node is a parsed value that keeps what encoding/json's map would lose: the
// order of members and the members that appear twice.
type node struct {
	// scalar is a string, json.Number, bool or nil; unused for the other kinds.
	scalar  any
	kind    kind
	members []member
	items   []node
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

// readNode reads the decoder's next value; data was found to be valid JSON
// before, so an error is only ever the depth.
func readNode(d *json.Decoder, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return node{}, fmt.Errorf("is not JSON: %w", err)
	}
	switch token {
	case json.Delim('{'):
		return readObject(d, depth)
	case json.Delim('['):
		return readArray(d, depth)
	}
	return node{scalar: token}, nil
}

func readObject(d *json.Decoder, depth int) (node, error) {
	n := node{kind: objectKind}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return node{}, fmt.Errorf("is not JSON: %w", err)
		}
		value, err := readNode(d, depth+1)
		if err != nil {
			return node{}, err
		}
		n.members = append(n.members, member{name: name.(string), value: value})
	}
	_, err := d.Token()
	return n, err
}

func readArray(d *json.Decoder, depth int) (node, error) {
	n := node{kind: arrayKind}
	for d.More() {
		item, err := readNode(d, depth+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	_, err := d.Token()
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
