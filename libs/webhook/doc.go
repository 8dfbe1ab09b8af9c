// Package webhook sends signed HTTP requests to addresses that others chose.
//
// # Signing
//
// After the Standard Webhooks specification
// (https://www.standardwebhooks.com, spec 1.0): the headers webhook-id,
// webhook-timestamp (seconds since the epoch, of the attempt) and
// webhook-signature, which is v1, and the base64 of HMAC-SHA256 over
// id.timestamp.body. While a secret is exchanged there are two signatures,
// separated by a space. The id stays the same however often a message is sent;
// receivers keep the ids they have acted on. Verify is the receiver's end.
//
// # Secrets
//
// A secret has to be at hand to sign with, so it cannot be stored as a hash:
// it is stored sealed (AES-256-GCM) by a key that lives in the configuration
// alone, bound to the webhook it belongs to. A copy of the database signs
// nothing. Several keys may be there at once: the first seals, all open.
//
// # Where a request may go
//
// Whoever may register a URL must not reach what only this process can (SSRF).
// The address is judged when a connection is dialled, after names are resolved:
// a name that answers otherwise the second time (DNS rebinding) gains nothing.
// Refused is all that is not public unicast: loopback, private, link-local
// (and so the metadata services of clouds), unique local, shared (CGNAT),
// multicast, unspecified, reserved, and IPv6 that carries such an IPv4
// address. No proxy is used, no redirect followed, https is demanded.
//
// Fed by services/webhooks, which delivers, and by the control plane, which
// makes secrets and tests a webhook.
package webhook
