// Package overrides is the contract of topic overrides.v1 and of the overrides
// that the control plane's REST API takes and gives: other numbers for one
// subject and metric, until a date.
//
// The control plane writes it, the relay carries it, gateways put an override's
// numbers in place of those of the rule that won. The type says nothing of
// validity; libs/rule does.
package overrides
