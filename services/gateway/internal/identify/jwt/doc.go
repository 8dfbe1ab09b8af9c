// Package jwt tells whose request it is by a signed token: it verifies JSON
// Web Tokens (RFC 7519, in the compact form of RFC 7515) of configured issuers
// and turns their claims into the identity that rules are matched by.
//
// A Verifier holds one key set for each issuer. Run fetches the sets (JWKS,
// RFC 7517) in the background; Verify only reads what is there, so a slow,
// broken or silent issuer never makes a request wait.
//
// # Invariants
//
//   - The request path starts no fetch and waits for none, and it takes no
//     lock. A token whose key is unknown is refused at once; it can bring the
//     next fetch forward, but two fetches of an issuer's keys that are held
//     already are at least 30 s apart, whatever arrives.
//   - A key set is immutable and replaced as a whole. While its issuer is away
//     the last one stays in force, for as long as that lasts: its age is a
//     metric. A key that its issuer no longer publishes stops counting with
//     the first successful fetch after that.
//   - Algorithms are pinned by configuration (RFC 8725, 3.1). "none" and the
//     HMAC algorithms cannot be configured; a token with an algorithm that is
//     not pinned is refused before a key is looked up, and a key serves only
//     algorithms of its own type and curve. Keys that a token brings along
//     (jwk, jku, x5c, x5u) are never looked at.
//   - Claims other than the issuer are looked at only after the signature held.
//   - Errors and logs name settings and claims, and never hold the token or a
//     part of it.
//   - A cached answer is the answer that verifying anew would give: an entry
//     counts only for the very key set and the time it was verified for.
//
// Every configured issuer is trusted for every tenant it names. Issuers that
// must not speak for each other's tenants need a gate each.
//
// Fed by the issuers' JWKS endpoints; feeds the gateway's identify stage.
// ErrMalformed and ErrUnknownIssuer say that a bearer token is not meant for
// this gate; it may be the upstream's own. A token that names a configured
// issuer in whatever form is never refused with one of these.
package jwt
