package plan

import "fmt"

// FieldError is one mistake in a customer or plan.
type FieldError struct {
	// Field is its path, such as prices[0].tiers[1].upTo.
	Field string
	// Message is for people: what would be right.
	Message string
}

// Error implements error.
func (e FieldError) Error() string { return e.Field + ": " + e.Message }

type validator struct{ errs []FieldError }

func (v *validator) add(field, format string, args ...any) {
	v.errs = append(v.errs, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}
