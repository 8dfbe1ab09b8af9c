package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// shape is a kind of document and the fields it has.
type shape struct {
	item, article string
	fields        []string
}

var shapes = []shape{
	{"rule", "a", strictjson.Names[rules.Rule]()},
	{"override", "an", strictjson.Names[overrides.Override]()},
	{"service", "a", strictjson.Names[catalog.Service]()},
	{"customer", "a", strictjson.Names[sales.Customer]()},
	{"plan", "a", strictjson.Names[sales.Plan]()},
}

// wrongKind refuses a document that was written for another kind than item, whose
// fields are none of item's; nil for any other. It takes the place of one mistake
// a field: a document is rarely wrong in two fields that are right for another kind.
func wrongKind(item string, body []byte) *api.Problem {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	unknown := func(s shape) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !slices.Contains(s.fields, name) {
				names = append(names, name)
			}
		}
		return names
	}
	at := slices.IndexFunc(shapes, func(s shape) bool { return s.item == item })
	here := unknown(shapes[at])
	for _, other := range shapes {
		there := unknown(other)
		if len(here) > 0 && len(there) == 0 || len(here)-len(there) >= 2 {
			by := slices.DeleteFunc(slices.Clone(here), func(name string) bool { return slices.Contains(there, name) })
			p := api.NewProblem(http.StatusBadRequest, "wrong-kind", fmt.Sprintf("looks like %s %s, which has %s, and not like %s %s; %ss are written to /v1/%ss (sluice %ss apply)",
				other.article, other.item, strings.Join(by, " and "), shapes[at].article, item, other.item, other.item, other.item))
			p.Errors = []api.FieldError{api.InBody("", p.Detail)}
			return p
		}
	}
	return nil
}
