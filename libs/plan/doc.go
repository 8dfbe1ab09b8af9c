// Package plan says what is a valid customer or plan, and which rules and
// overrides a subscription to a plan stands for.
//
// It is pure: it reads no clock and no store. schemas/sales has the types,
// libs/rule judges rules and libs/period cuts periods. The control plane
// validates with it, and writes what it works out.
package plan
