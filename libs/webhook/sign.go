package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

// Headers of a request, after Standard Webhooks.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const signatureVersion = "v1,"

// sign puts the headers of an attempt on h, a signature for each secret.
func sign(h http.Header, id string, at time.Time, body []byte, secrets []service.Secret) error {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac, err := macOf(s, id, timestamp, body)
		if err != nil {
			return err
		}
		signatures[i] = signatureVersion + base64.StdEncoding.EncodeToString(mac)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}

func macOf(s service.Secret, id, timestamp string, body []byte) ([]byte, error) {
	key, err := keyOf(s)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(id), {'.'}, []byte(timestamp), {'.'}, body} {
		_, _ = mac.Write(part) // never fails
	}
	return mac.Sum(nil), nil
}

// Tolerance is how far a request's timestamp may be from now before Verify
// takes it for a replay.
const Tolerance = 5 * time.Minute

// Errors of Verify.
var (
	ErrSignature = errors.New("no signature of the request is of this secret")
	ErrTimestamp = errors.New("the request's timestamp is missing or too far from now")
)

// Verify checks a received request: that one of its signatures is of the
// secret, and that it was sent about now. Receivers in Go may use it.
func Verify(h http.Header, body []byte, secret service.Secret, now time.Time) error {
	timestamp := h.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > Tolerance {
		return ErrTimestamp
	}
	want, err := macOf(secret, h.Get(HeaderID), timestamp, body)
	if err != nil {
		return fmt.Errorf("verify webhook: %w", err)
	}
	for signature := range strings.SplitSeq(h.Get(HeaderSignature), " ") {
		text, ok := strings.CutPrefix(signature, signatureVersion)
		got, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return ErrSignature
}
