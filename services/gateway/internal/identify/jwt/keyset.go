package jwt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

// maxKeys bounds a key set; issuers publish two to a dozen.
const maxKeys = 256

// keyRef is what a token names its key by.
type keyRef struct{ kid, alg string }

// keySet holds the usable keys of one issuer. It is never changed after it was
// made, so it is read without a lock.
type keySet struct {
	byRef map[keyRef]any
	// only has the key of each algorithm that exactly one key serves: a token
	// may then leave kid out.
	only map[string]any
	size int
}

// find returns the key for a token, or nil. An empty kid means the token has
// none.
func (k *keySet) find(kid, alg string) any {
	if kid == "" {
		return k.only[alg]
	}
	return k.byRef[keyRef{kid, alg}]
}

// parseKeySet reads a JWKS (RFC 7517) and keeps what can verify one of the
// pinned algorithms. Keys of no use here are common (for encryption, of other
// types) and are left out; skipped says why, one a key. A set in which nothing
// is usable though keys are there is an error, so that it does not replace a
// good one; an empty set is the issuer's word that it has no keys.
func parseKeySet(document []byte, pinned []string) (set *keySet, skipped []error, err error) {
	var outer struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &outer); err != nil {
		return nil, nil, fmt.Errorf("read key set: %w", err)
	}
	switch {
	case outer.Keys == nil:
		return nil, nil, errors.New("read key set: no member keys")
	case len(*outer.Keys) > maxKeys:
		return nil, nil, fmt.Errorf("read key set: %d keys, more than %d", len(*outer.Keys), maxKeys)
	}
	set = &keySet{byRef: map[keyRef]any{}, only: map[string]any{}}
	served := map[string]int{}
	for i, raw := range *outer.Keys {
		if err := set.add(raw, pinned, served); err != nil {
			skipped = append(skipped, fmt.Errorf("key %d: %w", i, err))
		}
	}
	for alg, keys := range served {
		if keys > 1 {
			delete(set.only, alg)
		}
	}
	if set.size == 0 && len(skipped) > 0 {
		return nil, nil, fmt.Errorf("read key set: no usable key: %w", errors.Join(skipped...))
	}
	return set, skipped, nil
}

// add puts one key into the set, for each pinned algorithm it serves.
func (k *keySet) add(raw json.RawMessage, pinned []string, served map[string]int) error {
	jwk, key, err := parseKey(raw)
	if err != nil {
		return err
	}
	used := false
	for _, alg := range pinned {
		if !algorithms[alg](key) || !namesAlgorithm(jwk.ALG, alg) {
			continue
		}
		if jwk.KID != "" {
			ref := keyRef{jwk.KID, alg}
			// Which of the two a token means cannot be told.
			if _, twice := k.byRef[ref]; twice {
				return errors.New("its kid is there twice for one algorithm; the first counts")
			}
			k.byRef[ref] = key
		}
		k.only[alg] = key
		served[alg]++
		used = true
	}
	if !used {
		return errors.New("serves no allowed algorithm")
	}
	k.size++
	return nil
}

// namesAlgorithm: a key may leave its algorithm open. Ed25519 is what RFC 9864
// calls EdDSA on that curve.
func namesAlgorithm(named jwkset.ALG, alg string) bool {
	return named == "" || string(named) == alg || named == "Ed25519" && alg == "EdDSA"
}

// parseKey reads one public key. Its certificates are not looked at: the set
// itself was fetched from a configured address, and that is what is trusted.
func parseKey(raw json.RawMessage) (jwkset.JWKMarshal, any, error) {
	var jwk jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &jwk); err != nil {
		return jwk, nil, errors.New("not a JSON web key")
	}
	switch {
	case jwk.USE != "" && jwk.USE != jwkset.UseSig:
		return jwk, nil, errors.New("not for signatures (use)")
	case len(jwk.KEYOPS) > 0 && !slices.Contains(jwk.KEYOPS, jwkset.KeyOpsVerify):
		return jwk, nil, errors.New("not for verifying (key_ops)")
	case jwk.KTY == jwkset.KtyOct:
		return jwk, nil, errors.New("a symmetric key")
	case jwk.D != "":
		return jwk, nil, errors.New("its private part is published: anybody can sign with it")
	}
	jwk.X5C, jwk.X5U, jwk.X5T, jwk.X5TS256 = nil, "", "", ""
	// Validation is left out: it checks a key against its certificates.
	parsed, err := jwkset.NewJWKFromMarshal(jwk, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	if err != nil {
		return jwk, nil, fmt.Errorf("read %s key: %w", jwk.KTY, err)
	}
	if err := checkStrength(parsed.Key()); err != nil {
		return jwk, nil, err
	}
	return jwk, parsed.Key(), nil
}
