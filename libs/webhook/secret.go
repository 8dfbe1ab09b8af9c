package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-platform/sluice/libs/service"
)

const (
	// secretPrefix is the specification's; it lets scanners for leaked secrets
	// recognise one.
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// NewSecret makes a secret: whsec_ and 32 random bytes in base64.
func NewSecret() service.Secret {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return service.Secret(secretPrefix + base64.StdEncoding.EncodeToString(b))
}

// keyOf is what a secret signs with: the bytes behind its prefix.
func keyOf(s service.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(s.Reveal(), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) == 0 {
		return nil, fmt.Errorf("a secret is %s and base64", secretPrefix) // never with the secret itself
	}
	return key, nil
}

// ErrSecret: a sealed secret cannot be opened, since its key is not configured
// any more or it belongs to another webhook.
var ErrSecret = errors.New("the webhook's secret cannot be opened")
