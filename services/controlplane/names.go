package controlplane

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// given is a name in a body: an id, or who or what is meant.
type given struct{ field, name string }

// spaced tells a name that a request can hardly have: the values of headers are
// trimmed on their way, and nobody sees the difference. Gateways go on enforcing
// what was once written of such a name, so that libs/rule takes it.
func (g given) spaced() bool { return g.name != strings.TrimSpace(g.name) }

// spacedErrors names the spaced of some names, but for those that were there
// before: what GET answers can be PUT back.
func spacedErrors(names, before []given) (found []FieldError) {
	for _, g := range names {
		if g.spaced() && !slices.Contains(before, g) {
			found = append(found, FieldError{"body", g.field, "must not begin or end with a space"})
		}
	}
	return found
}

// keepsNames refuses a document that takes the place of another with a new
// name that is spaced.
func (o operations[T, L]) keepsNames(current []byte, doc T) error {
	names := o.names(doc)
	if current == nil || !slices.ContainsFunc(names, given.spaced) {
		return nil // a document that is the first was judged with its body
	}
	var before T
	if err := json.Unmarshal(current, &before); err != nil {
		return fmt.Errorf("decode stored %s: %w", o.kind, err)
	}
	if found := spacedErrors(names, o.names(before)); len(found) > 0 {
		return invalid(found...)
	}
	return nil
}

// subjectNames are the names in a subject: of a user or application the
// tenant's, which ends at the first slash, and its own.
func subjectNames(s rules.Subject) []given {
	const field = "subject.value"
	if s.Kind == rules.SubjectUser || s.Kind == rules.SubjectApplication {
		tenant, name, _ := strings.Cut(s.Value, "/")
		return []given{{field, tenant}, {field, name}}
	}
	return []given{{field, s.Value}}
}
