// Package advice finds what is valid and yet likely a mistake in documents that
// callers write: rules that can never win, scopes that nothing matches, overrides
// that concern no rule, keys of tenants that are no customers.
//
// A document is judged beside what is stored, and beside the other documents of
// the same call, which take the place of stored ones with the same id. Nothing is
// refused for a warning: a service or rule may be yet to come.
package advice
