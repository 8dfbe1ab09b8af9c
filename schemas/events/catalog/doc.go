// Package catalog is the contract of topic catalog.v1: which services stand
// behind the gate, under which route prefix, and what their endpoints cost.
//
// The control plane writes it, the relay carries it, gateways route by it.
package catalog
