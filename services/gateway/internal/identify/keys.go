package identify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// Key is one record of keys.v1, ready to be looked up. It is immutable.
type Key struct {
	ID, Tenant, User, Application string
	Label                         string // sha256: and the hash's digits, as events carry it
	Status                        string
	Expires                       time.Time // zero: never

	hash [sha256.Size]byte
}

// Expired reports whether the key has ended at the given time.
func (k *Key) Expired(at time.Time) bool {
	return !k.Expires.IsZero() && !at.Before(k.Expires)
}

// DecodeKey reads one record of keys.v1.
func DecodeKey(id string, value []byte) (*Key, error) {
	var k keys.Key
	if err := json.Unmarshal(value, &k); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	out := &Key{ID: id, Tenant: k.TenantID, User: k.UserID, Application: k.ApplicationID, Label: "sha256:" + k.SHA256, Status: k.Status}
	if k.TenantID == "" {
		return nil, errors.New("the key has no tenantId")
	}
	if len(k.SHA256) != hex.EncodedLen(sha256.Size) {
		return nil, errors.New("sha256 is not 64 hexadecimal digits")
	}
	if _, err := hex.Decode(out.hash[:], []byte(k.SHA256)); err != nil {
		return nil, fmt.Errorf("read sha256: %w", err)
	}
	if k.ExpiresAt != nil {
		out.Expires = *k.ExpiresAt
	}
	return out, nil
}

// Keys finds keys by their hash. Lookups take no lock: the table is split
// by the hash's first byte into immutable maps behind atomic pointers, so that
// one changed key among a million copies only its own part. The parts are
// written by the table's goroutine alone (stream.Sink).
type Keys struct {
	parts [256]atomic.Pointer[map[[sha256.Size]byte]*Key]
	byID  map[string]*Key // the writer's own
}

// NewKeys returns a table without keys.
func NewKeys() *Keys { return &Keys{byID: map[string]*Key{}} }

// Find returns the record of a presented key, or nil. It compares hashes
// only, so its timing says nothing about keys.
func (t *Keys) Find(presented string) *Key {
	hash := sha256.Sum256([]byte(presented))
	part := t.parts[hash[0]].Load()
	if part == nil {
		return nil
	}
	return (*part)[hash]
}

// Replace implements stream.Sink.
func (t *Keys) Replace(entries map[string]stream.Entry[*Key]) {
	var parts [256]map[[sha256.Size]byte]*Key
	t.byID = make(map[string]*Key, len(entries))
	for id, e := range entries {
		t.byID[id] = e.Value
		p := &parts[e.Value.hash[0]]
		if *p == nil {
			*p = map[[sha256.Size]byte]*Key{}
		}
		(*p)[e.Value.hash] = e.Value
	}
	for i := range parts {
		t.parts[i].Store(&parts[i])
	}
}

// Apply implements stream.Sink.
func (t *Keys) Apply(c stream.Change[*Key]) {
	old := t.byID[c.Key]
	if c.Deleted {
		delete(t.byID, c.Key)
		t.remove(old)
		return
	}
	key := c.Entry.Value
	t.byID[c.Key] = key
	if old != nil && old.hash != key.hash {
		t.remove(old)
	}
	t.change(key.hash, func(part map[[sha256.Size]byte]*Key) { part[key.hash] = key })
}

func (t *Keys) remove(old *Key) {
	if old == nil {
		return
	}
	t.change(old.hash, func(part map[[sha256.Size]byte]*Key) {
		// Another id may have taken the hash over; then it is not ours to take.
		if part[old.hash] == old {
			delete(part, old.hash)
		}
	})
}

func (t *Keys) change(hash [sha256.Size]byte, edit func(map[[sha256.Size]byte]*Key)) {
	next := map[[sha256.Size]byte]*Key{}
	if current := t.parts[hash[0]].Load(); current != nil && *current != nil {
		next = maps.Clone(*current)
	}
	edit(next)
	t.parts[hash[0]].Store(&next)
}
