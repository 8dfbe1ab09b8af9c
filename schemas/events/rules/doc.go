// Package rules is the contract of topic rules.v1 and of the rules that the
// control plane's REST API takes and gives: to whom, where, in which window,
// how much.
//
// The control plane writes it, the relay carries it, gateways enforce it. The
// type says nothing of validity; libs/rule does.
package rules
