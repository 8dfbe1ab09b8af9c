// Package rest calls the REST API of the control plane, or of another part, for
// the client commands: where it is, who calls, and what an answer means.
package rest
