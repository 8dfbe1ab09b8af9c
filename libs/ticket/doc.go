// Package ticket makes and checks signed tickets: short strings that say who
// may do what until when, and that nobody without a key can make or change.
//
// The portal hands them out as links; a waiting room hands out places with
// them. A ticket is checked from memory alone: no database, no Redis.
//
// # Form
//
// A ticket is base64url (RFC 4648, 5, without padding) of
//
//	version  1 byte, 1
//	key id   1 byte length, text
//	purpose  1 byte length, text
//	subject  2 bytes length, big-endian, text
//	nonce    16 random bytes
//	notBefore, expiry   8 bytes each, big-endian, ms since the epoch
//	MAC      32 bytes, HMAC-SHA256 (RFC 2104, FIPS 180-4) of all before it
//
// Every text carries its length under the MAC, so that no two tickets have the
// same bytes: subject "ab" for purpose "c" can never be read as "a" for "bc".
//
// # Invariants
//
//   - Nothing of a ticket but the key id is looked at before its MAC held, and
//     MACs are compared in constant time.
//   - A ticket for one purpose is worth nothing for another.
//   - One ticket has one text: what decodes to the same bytes in another way
//     is refused.
//   - Errors never hold a ticket or a key.
//
// Several keys are valid at once. The first one signs; the others are there
// until the tickets they signed have expired. Keys.Replace changes them while
// tickets are checked.
//
// A ticket proves itself as often as it is shown. What may be used once only
// remembers its Nonce.
package ticket
