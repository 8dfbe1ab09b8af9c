package rule

import (
	"cmp"
	"strings"
)

// FieldError says what is wrong with one field of a rule, and what would be right.
type FieldError struct {
	// Field is a JSON path into the rule, such as limit.window.
	Field string `json:"field"`
	// Message is for people: lower case, without the field's name.
	Message string `json:"message"`
}

// Error implements error.
func (e FieldError) Error() string { return e.Field + ": " + e.Message }

// InvalidError carries all field errors of one rule or override.
type InvalidError struct {
	Noun   string // override; "" is rule
	ID     string
	Fields []FieldError
}

// Error implements error.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("invalid " + cmp.Or(e.Noun, "rule") + " " + e.ID)
	for i, f := range e.Fields {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(f.Error())
	}
	return b.String()
}
