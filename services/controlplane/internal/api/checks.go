package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts that no library judges.
const (
	MaxName     = 256 // characters
	MaxIdentity = 128 // characters, as of what rules name
)

// Checks collects what is wrong with the fields of a body.
type Checks struct{ Found []FieldError }

// Add adds a mistake.
func (c *Checks) Add(field, format string, args ...any) {
	c.Found = append(c.Found, FieldError{"body", field, fmt.Sprintf(format, args...)})
}

// Text adds a mistake unless value has least to most printable characters.
func (c *Checks) Text(field, value string, least, most int) {
	n := utf8.RuneCountInString(value)
	if n < least || n > most || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		c.Add(field, "must have %d to %d printable characters", least, most)
	}
}

// Problem refuses the request if a mistake was added, and is nil otherwise.
func (c *Checks) Problem() error {
	if len(c.Found) == 0 {
		return nil
	}
	return Invalid(c.Found...)
}

// Name is a name in a body: an id, or who or what is meant.
type Name struct{ Field, Value string }

// Padded tells a name that a request can hardly have: the values of headers are
// trimmed on their way, and nobody sees the difference. Gateways go on enforcing
// documents that were once written with such a name, so libs/rule accepts it.
func (n Name) Padded() bool { return n.Value != strings.TrimSpace(n.Value) }

// CheckNames returns a mistake for each padded name, except those of the stored
// document before: what GET answers can be PUT back.
func CheckNames(names, before []Name) (found []FieldError) {
	for _, n := range names {
		if n.Padded() && !slices.Contains(before, n) {
			found = append(found, FieldError{"body", n.Field, "must not begin or end with a space"})
		}
	}
	return found
}
