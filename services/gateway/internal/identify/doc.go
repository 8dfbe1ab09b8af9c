// Package identify finds out whose request it is.
//
// A request is identified by an API key, else by a token of a configured issuer,
// else by the headers of a trusted peer, else it is anonymous. Whatever proves the
// identity is the only source: identity headers beside it are ignored, even
// malformed ones. A key or token that claims to be valid here and is not is
// rejected; it never makes a request anonymous.
//
// Keys come from the table of keys.v1 and are found by their SHA-256 without a
// lock. Tokens are verified in package jwt, which waits for nothing. The package
// also checks the bearer tokens of operators on the admin port.
//
// Neither a key nor a token is logged or put into an error.
package identify
