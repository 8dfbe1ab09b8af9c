package ticket

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

const (
	// minSecret is the length of HMAC-SHA256's output, below which a key is
	// weaker than the MAC (RFC 2104, 3).
	minSecret = 32
	maxSecret = 1024
	maxKeyID  = 64
)

// Key signs tickets and checks them.
type Key struct {
	// ID tells the keys apart: 1 to 64 letters, digits, dots, hyphens and
	// underscores. It is readable in each ticket.
	ID string
	// Secret is 32 to 1024 random bytes.
	Secret []byte
}

// Keys are those in force. They may be replaced at any time, concurrently with
// Sign and Verify.
type Keys struct {
	ring atomic.Pointer[[]Key]
}

// NewKeys takes keys: the first one signs, all check.
func NewKeys(keys ...Key) (*Keys, error) {
	k := new(Keys)
	if err := k.Replace(keys...); err != nil {
		return nil, err
	}
	return k, nil
}

// Replace puts other keys in force, at once and as a whole. On an error the
// present ones stay.
func (k *Keys) Replace(keys ...Key) error {
	if len(keys) == 0 {
		return errors.New("ticket keys: none given, and one must sign")
	}
	ring, seen := make([]Key, len(keys)), map[string]bool{}
	for i, key := range keys {
		if err := key.check(); err != nil {
			return err
		}
		if seen[key.ID] {
			return fmt.Errorf("ticket keys: two are called %q", key.ID)
		}
		seen[key.ID] = true
		ring[i] = Key{ID: key.ID, Secret: append([]byte(nil), key.Secret...)}
	}
	k.ring.Store(&ring)
	return nil
}

func (k Key) check() error {
	if !validKeyID(k.ID) {
		return fmt.Errorf("ticket keys: an id is 1 to %d letters, digits, dots, hyphens and underscores, and one is not", maxKeyID)
	}
	if n := len(k.Secret); n < minSecret || n > maxSecret {
		return fmt.Errorf("ticket keys: the secret of %q has %d bytes, and %d to %d are right", k.ID, n, minSecret, maxSecret)
	}
	return nil
}

func validKeyID(id string) bool {
	if id == "" || len(id) > maxKeyID {
		return false
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func (k *Keys) signing() Key { return (*k.ring.Load())[0] }

func (k *Keys) named(id string) (Key, bool) {
	for _, key := range *k.ring.Load() {
		if key.ID == id {
			return key, true
		}
	}
	return Key{}, false
}

// ReadKeys reads keys, one a line: its id, a space, and its secret in base64
// (RFC 4648, 4 or 5, padded or not), as `openssl rand -base64 32` prints it.
// Empty lines and those that begin with # are passed over. Errors name the
// line, never what stands in it.
func ReadKeys(r io.Reader) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("ticket keys: line %d is not a key's id and its secret", n)
		}
		secret, err := decodeSecret(fields[1])
		if err != nil {
			return nil, fmt.Errorf("ticket keys: line %d: the secret is not base64", n)
		}
		keys = append(keys, Key{ID: fields[0], Secret: secret})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read ticket keys: %w", err)
	}
	return keys, nil
}

func decodeSecret(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	return base64.RawStdEncoding.DecodeString(text)
}

// ReadKeysFile reads keys from a file.
func ReadKeysFile(path string) ([]Key, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read ticket keys: %w", err)
	}
	defer file.Close() // it was only read
	keys, err := ReadKeys(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}
