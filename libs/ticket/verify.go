package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"
)

// Check is what a ticket is held against.
type Check struct {
	// Purpose is the one a ticket must have.
	Purpose string
	// Now is the time. Leeway is how far the clock of whoever signed may be off,
	// either way; 0 is none.
	Now    time.Time
	Leeway time.Duration
	// Life is the most that a ticket may still have to go, Leeway aside: one
	// that ends later was signed by a clock that is off, or for ever. 0 is any.
	Life time.Duration
}

// Verify reads a ticket and returns it, or the Reason why it counts for
// nothing. It allocates little and waits for nobody, so that forged tickets
// are cheap to refuse. Safe for concurrent use.
func (k *Keys) Verify(text string, c Check) (Ticket, error) {
	t, err := k.authentic(text)
	if err != nil {
		return Ticket{}, err
	}
	switch {
	case t.Purpose != c.Purpose:
		return Ticket{}, ErrPurpose
	case c.Now.Add(c.Leeway).Before(t.NotBefore):
		return Ticket{}, ErrNotYet
	case !c.Now.Add(-c.Leeway).Before(t.Expiry):
		return Ticket{}, ErrExpired
	case c.Life > 0 && t.Expiry.After(c.Now.Add(c.Life+c.Leeway)):
		return Ticket{}, ErrTooLong
	}
	return t, nil
}

// authentic decodes a ticket that one of the keys signed.
func (k *Keys) authentic(text string) (Ticket, error) {
	if len(text) > MaxLength {
		return Ticket{}, ErrMalformed
	}
	raw, err := encoding.DecodeString(text)
	// DecodeString passes over line ends, which would give a ticket several texts.
	if err != nil || encoding.EncodedLen(len(raw)) != len(text) || len(raw) < fixedSize {
		return Ticket{}, ErrMalformed
	}
	body, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	t, ok := parse(body)
	if !ok {
		return Ticket{}, ErrMalformed
	}
	key, ok := k.named(t.KeyID)
	if !ok {
		return Ticket{}, ErrUnknownKey
	}
	if !hmac.Equal(mac(key.Secret, body), sum) {
		return Ticket{}, ErrForged
	}
	return t, nil
}

// parse reads what the MAC covers; nothing of it is to be trusted yet.
func parse(b []byte) (Ticket, bool) {
	r := reader{left: b, ok: true}
	if v := r.take(1); !r.ok || v[0] != version {
		return Ticket{}, false
	}
	var t Ticket
	t.KeyID = string(r.text(1))
	t.Purpose = string(r.text(1))
	t.Subject = string(r.text(2))
	copy(t.Nonce[:], r.take(nonceSize))
	notBefore, expiry := r.millis(), r.millis()
	if notBefore > 0 {
		t.NotBefore = time.UnixMilli(notBefore).UTC()
	}
	t.Expiry = time.UnixMilli(expiry).UTC()
	return t, r.ok && len(r.left) == 0
}

// reader takes fields from the front; once one is missing, ok is false and
// what it gives is zero.
type reader struct {
	left []byte
	ok   bool
}

func (r *reader) take(n int) []byte {
	if !r.ok || len(r.left) < n {
		r.ok = false
		return make([]byte, min(n, nonceSize)) // no caller indexes further
	}
	field := r.left[:n]
	r.left = r.left[n:]
	return field
}

// text reads a text behind its length, which takes size bytes.
func (r *reader) text(size int) []byte {
	length := 0
	for _, b := range r.take(size) {
		length = length<<8 | int(b)
	}
	return r.take(length)
}

func (r *reader) millis() int64 {
	n := binary.BigEndian.Uint64(r.take(8))
	if n > math.MaxInt64/2 {
		r.ok = false
		return 0
	}
	return int64(n)
}
