package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math"
)

// defaultAlgorithms are pinned where an issuer's configuration names none.
var defaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// algorithms are those that can be pinned, each with the keys it works with.
// An algorithm whose verifying key also signs (HS256 and its kin) has no place
// here: whoever knows a published key could sign with it.
var algorithms = map[string]func(key any) bool{
	"RS256": isRSA, "RS384": isRSA, "RS512": isRSA,
	"PS256": isRSA, "PS384": isRSA, "PS512": isRSA,
	"ES256": isEC(elliptic.P256()), "ES384": isEC(elliptic.P384()), "ES512": isEC(elliptic.P521()),
	"EdDSA": func(key any) bool { _, ok := key.(ed25519.PublicKey); return ok },
}

func isRSA(key any) bool { _, ok := key.(*rsa.PublicKey); return ok }

// isEC binds an algorithm to its curve (RFC 7518, 3.4): the signature's length
// alone would not.
func isEC(curve elliptic.Curve) func(any) bool {
	return func(key any) bool {
		k, ok := key.(*ecdsa.PublicKey)
		return ok && k.Curve == curve
	}
}

// Sizes of RSA moduli in bits. RFC 7518, 3.3 demands 2048; the upper end
// bounds what one verification can cost.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// checkStrength refuses keys that are too weak, or too costly, to verify with.
func checkStrength(key any) error {
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil
	}
	if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
		return fmt.Errorf("modulus of %d bits, not %d to %d", bits, minRSABits, maxRSABits)
	}
	if k.E < 3 || k.E > math.MaxInt32 || k.E%2 == 0 {
		return errors.New("public exponent out of range")
	}
	return nil
}
