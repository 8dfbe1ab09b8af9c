// Package resource gives a kind of document that callers write whole (a rule, a
// service, a customer) its five operations: create, list, get, replace, delete.
//
// A Resource says what is the kind's own: where its key is, what makes it valid,
// what a write completes. A write decodes the body, judges it, and hands
// store.Apply a store.Write: see there for the rest of the walk.
package resource
