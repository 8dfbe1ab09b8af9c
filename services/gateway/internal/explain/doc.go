// Package explain answers POST /v1/explain on the admin port: which rules hold for
// a request that is not made, which of them win, what their counters say, and how
// the gate would answer.
//
// It uses the code that requests go through: the service and endpoint are found by
// package routing, the rules by libs/rule, and the verdict by package
// charge, as requests do. It charges nothing: counters are asked at cost 0.
package explain
