package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// shape is a kind that takes apply, and the fields of its documents.
type shape struct {
	noun, one string
	fields    []string
}

func shapeOf[T any](k kind[T]) shape { return shape{k.noun, k.one(), strictjson.Names[T]()} }

// lookalike says which other kind a document was written for, where fields of
// it are none of this kind's; else it is empty. That is told in place of every
// such field: a document is rarely wrong in two and right in them for another kind.
func (k kind[T]) lookalike(data []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return ""
	}
	strangers := func(fields []string) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !slices.Contains(fields, name) {
				names = append(names, name)
			}
		}
		return names
	}
	here := strangers(strictjson.Names[T]())
	for _, other := range []shape{
		shapeOf[rules.Rule](ruleKind), shapeOf[overrides.Override](overrideKind), shapeOf[catalog.Service](serviceKind),
		shapeOf[sales.Customer](customerKind), shapeOf[sales.Plan](planKind),
	} {
		there := strangers(other.fields)
		if len(here) > 0 && len(there) == 0 || len(here)-len(there) >= 2 {
			by := slices.DeleteFunc(slices.Clone(here), func(name string) bool { return slices.Contains(there, name) })
			return fmt.Sprintf("looks like %s, which has %s, and not like %s; %ss are written by sluice %ss apply", other.one, strings.Join(by, " and "), k.one(), other.noun, other.noun)
		}
	}
	return ""
}
