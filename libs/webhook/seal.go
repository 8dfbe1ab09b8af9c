package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/service"
)

// sealingKey is one key of a ring.
type sealingKey struct {
	id   string
	aead cipher.AEAD
}

// keyring seals secrets with its first key and opens them with any.
type keyring []sealingKey

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// parseKeys reads keys written as id:base64 of 32 bytes. Errors name the
// place, never the key.
func parseKeys(keys []service.Secret) (keyring, error) {
	var ring keyring
	for i, k := range keys {
		id, text, _ := strings.Cut(k.Reveal(), ":")
		raw, err := base64.StdEncoding.DecodeString(text)
		if !keyID.MatchString(id) || err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("webhooks.keys[%d]: must be id:base64 of 32 random bytes, such as k1:$(openssl rand -base64 32)", i)
		}
		if slices.ContainsFunc(ring, func(o sealingKey) bool { return o.id == id }) {
			return nil, fmt.Errorf("webhooks.keys[%d]: the id %s is used twice", i, id)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, fmt.Errorf("webhooks.keys[%d]: %w", i, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("webhooks.keys[%d]: %w", i, err)
		}
		ring = append(ring, sealingKey{id, aead})
	}
	return ring, nil
}

// seal returns id:base64. The webhook's id is authenticated with it, so that
// one's secret cannot be put in another's place.
func (r keyring) seal(webhook string, s service.Secret) (string, error) {
	if len(r) == 0 {
		return "", ErrNoKeys
	}
	sealed := r[0].aead.Seal(nil, nil, []byte(s.Reveal()), []byte(webhook))
	return r[0].id + ":" + base64.StdEncoding.EncodeToString(sealed), nil
}

func (r keyring) open(webhook, sealed string) (service.Secret, error) {
	id, text, _ := strings.Cut(sealed, ":")
	at := slices.IndexFunc(r, func(k sealingKey) bool { return k.id == id })
	if at < 0 {
		return "", fmt.Errorf("%w: webhooks.keys has no key of its id", ErrSecret)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("%w: it is no base64", ErrSecret)
	}
	plain, err := r[at].aead.Open(nil, nil, raw, []byte(webhook))
	if err != nil {
		return "", fmt.Errorf("%w: it was not sealed with that key for this webhook", ErrSecret)
	}
	return service.Secret(plain), nil
}

// ErrNoKeys: nothing can be sealed, since webhooks.keys is empty.
var ErrNoKeys = errors.New("webhooks.keys is empty: secrets of webhooks cannot be stored")
