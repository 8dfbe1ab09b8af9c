// Package catalog says which services the gate can route to are valid, and
// fills in what a service leaves out.
//
// A service owns a route prefix; its endpoints are patterns in the syntax of
// net/http.ServeMux that lie under it. The control plane validates what it
// stores, the client what it is about to send; gateways read only normalised
// services.
package catalog
