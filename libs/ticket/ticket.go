package ticket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const (
	version    = 1
	maxPurpose = 64
	maxSubject = 1024

	nonceSize = 16
	timesSize = 16
	fixedSize = nonceSize + timesSize + sha256.Size
)

// MaxLength is the length of the longest ticket, in characters.
const MaxLength = (1 + 1 + maxKeyID + 1 + maxPurpose + 2 + maxSubject + fixedSize + 2) / 3 * 4

// Ticket is what was signed.
type Ticket struct {
	// Purpose is what the ticket is for, 1 to 64 bytes: portal.
	Purpose string
	// Subject is who or what it is about, 1 to 1024 bytes: a customer's id.
	Subject string
	// NotBefore and Expiry bound when it holds: from NotBefore on and until just
	// before Expiry. A zero NotBefore is from ever. They keep whole milliseconds.
	NotBefore, Expiry time.Time
	// Nonce makes the ticket one of its kind. Sign draws it.
	Nonce [nonceSize]byte
	// KeyID is the key that signed. Sign sets it.
	KeyID string
}

// encoding refuses what Go's default tolerates: bits that belong to no byte.
var encoding = base64.RawURLEncoding.Strict()

// Sign makes a ticket. It is refused without a purpose, a subject or an
// expiry, and where one is too long or ends before it begins.
func (k *Keys) Sign(t Ticket) (string, error) {
	if err := t.check(); err != nil {
		return "", fmt.Errorf("sign ticket: %w", err)
	}
	key := k.signing()
	t.KeyID = key.ID
	// It never fails (crypto/rand, Go 1.24 and later).
	_, _ = rand.Read(t.Nonce[:])
	body := t.body()
	return encoding.EncodeToString(append(body, mac(key.Secret, body)...)), nil
}

func (t *Ticket) check() error {
	switch {
	case t.Purpose == "" || len(t.Purpose) > maxPurpose:
		return fmt.Errorf("the purpose has %d bytes, and 1 to %d are right", len(t.Purpose), maxPurpose)
	case t.Subject == "" || len(t.Subject) > maxSubject:
		return fmt.Errorf("the subject has %d bytes, and 1 to %d are right", len(t.Subject), maxSubject)
	case t.Expiry.IsZero() || t.Expiry.UnixMilli() <= 0:
		return errors.New("it has no expiry")
	case millis(t.NotBefore) >= t.Expiry.UnixMilli():
		return errors.New("it expires before it is valid")
	}
	return nil
}

// millis is when a ticket begins to hold: 0 is from ever.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, t.UnixMilli())
}

// body is all that the MAC covers.
func (t *Ticket) body() []byte {
	b := make([]byte, 0, 5+len(t.KeyID)+len(t.Purpose)+len(t.Subject)+fixedSize)
	b = append(b, version, byte(len(t.KeyID)))
	b = append(b, t.KeyID...)
	b = append(b, byte(len(t.Purpose)))
	b = append(b, t.Purpose...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.Subject)))
	b = append(b, t.Subject...)
	b = append(b, t.Nonce[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(millis(t.NotBefore)))
	return binary.BigEndian.AppendUint64(b, uint64(t.Expiry.UnixMilli()))
}

func mac(secret, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(body)
	return h.Sum(nil)
}
