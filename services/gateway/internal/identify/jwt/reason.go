package jwt

// Reason is why a token was refused. It is an error, to be asked for with
// errors.Is(err, jwt.ErrExpired) or errors.As.
type Reason uint8

// The reasons, in the order they are looked for: a token that has several is
// refused for the first.
const (
	// ErrTooLong: the token names a configured issuer, and has over 16 KiB.
	ErrTooLong Reason = iota
	// ErrMalformed: no JWT, so nobody's that is known here.
	ErrMalformed
	// ErrBadForm: the token names a configured issuer, and is not what RFC 7515
	// and 7519 make of a token: three segments of base64url in its one spelling,
	// with a kid that is a string.
	ErrBadForm
	// ErrUnknownIssuer: the token's iss is none of the configured issuers.
	ErrUnknownIssuer
	// ErrCritical: the token demands extensions ("crit", RFC 7515, 4.1.11);
	// none is supported.
	ErrCritical
	// ErrAlgorithm: the token's alg is not pinned for its issuer.
	ErrAlgorithm
	// ErrNoKeys: no key set of the issuer was fetched yet. It says nothing
	// about the token.
	ErrNoKeys
	// ErrUnknownKey: no key of the issuer fits; perhaps not yet.
	ErrUnknownKey
	// ErrSignature: the signature does not hold.
	ErrSignature
	// ErrExpired: exp has passed, leeway included.
	ErrExpired
	// ErrNotYetValid: nbf is still to come, leeway included.
	ErrNotYetValid
	// ErrAudience: none of the token's aud is a configured audience.
	ErrAudience
	// ErrMissingClaim: exp or a required identity is not there or empty.
	ErrMissingClaim
	// ErrBadClaim: a claim is of the wrong type, over 256 bytes, or holds
	// control characters.
	ErrBadClaim

	reasons
)

var reasonTexts = [reasons]string{
	ErrTooLong:       "token over 16 KiB",
	ErrMalformed:     "malformed token",
	ErrBadForm:       "badly formed token",
	ErrUnknownIssuer: "unknown issuer",
	ErrCritical:      "unsupported critical header",
	ErrAlgorithm:     "algorithm not allowed",
	ErrNoKeys:        "no keys of the issuer yet",
	ErrUnknownKey:    "unknown key",
	ErrSignature:     "bad signature",
	ErrExpired:       "token expired",
	ErrNotYetValid:   "token not yet valid",
	ErrAudience:      "wrong audience",
	ErrMissingClaim:  "missing claim",
	ErrBadClaim:      "bad claim",
}

// reasonLabels are the values of the metric's label result.
var reasonLabels = [reasons]string{
	ErrTooLong:       "too_long",
	ErrMalformed:     "malformed",
	ErrBadForm:       "bad_form",
	ErrUnknownIssuer: "unknown_issuer",
	ErrCritical:      "critical_header",
	ErrAlgorithm:     "algorithm",
	ErrNoKeys:        "no_keys",
	ErrUnknownKey:    "unknown_key",
	ErrSignature:     "bad_signature",
	ErrExpired:       "expired",
	ErrNotYetValid:   "not_yet_valid",
	ErrAudience:      "wrong_audience",
	ErrMissingClaim:  "missing_claim",
	ErrBadClaim:      "bad_claim",
}

// Error says the reason in words that may be shown to the client.
func (r Reason) Error() string {
	if r >= reasons {
		return "refused token"
	}
	return reasonTexts[r]
}

// ClaimError is a Reason that lies in one claim. It holds the claim's name as
// configured, never its value.
type ClaimError struct {
	Claim  string
	Reason Reason
}

// Error names the claim.
func (e *ClaimError) Error() string { return e.Reason.Error() + ": " + e.Claim }

// Unwrap gives the Reason to errors.Is and errors.As.
func (e *ClaimError) Unwrap() error { return e.Reason }
