package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"
)

// fieldChange is one field that differs; an empty side is absent.
type fieldChange struct{ path, before, after string }

func (c fieldChange) String() string {
	return fmt.Sprintf("%s: %s → %s", c.path, rest.FirstOf(c.before, "(absent)"), rest.FirstOf(c.after, "(absent)"))
}

// diff compares two documents field by field, by path. Both have their
// defaults filled in and their version set to 0.
func diff(before, after any) ([]fieldChange, error) {
	old, err := flatten(before)
	if err != nil {
		return nil, err
	}
	wanted, err := flatten(after)
	if err != nil {
		return nil, err
	}
	var changes []fieldChange
	for path, value := range wanted {
		if old[path] != value {
			changes = append(changes, fieldChange{path, old[path], value})
		}
	}
	for path, value := range old {
		if _, kept := wanted[path]; !kept {
			changes = append(changes, fieldChange{path, value, ""})
		}
	}
	slices.SortFunc(changes, func(a, b fieldChange) int { return strings.Compare(a.path, b.path) })
	return changes, nil
}

// flatten maps the path of each leaf to its JSON text. Numbers stay digits:
// a float64 would make two large limits equal.
func flatten(doc any) (map[string]string, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	leaves := map[string]string{}
	return leaves, flattenInto(leaves, "", data)
}

func flattenInto(leaves map[string]string, path string, data json.RawMessage) error {
	switch data[0] {
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return fmt.Errorf("decode %s: %w", path, err)
		}
		for name, value := range members {
			at := name
			if path != "" {
				at = path + "." + name
			}
			if err := flattenInto(leaves, at, value); err != nil {
				return err
			}
		}
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(data, &items); err != nil {
			return fmt.Errorf("decode %s: %w", path, err)
		}
		for i, item := range items {
			if err := flattenInto(leaves, fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return err
			}
		}
	default:
		leaves[path] = string(data)
	}
	return nil
}
