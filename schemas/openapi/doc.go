// Package openapi embeds the REST contract of the control plane.
//
// controlplane.yaml is generated from the room's code (go generate in
// services/controlplane) and committed, so that a change of the contract is
// seen in review; a test there fails while the two differ.
package openapi
