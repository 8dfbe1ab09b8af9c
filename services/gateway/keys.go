package gateway

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

// apiKey is one record of keys.v1, ready to be looked up. It is never changed
// after it was made.
type apiKey struct {
	id, tenant, user, application string

	hash    [sha256.Size]byte
	label   string // sha256: and the hash's digits, as events carry it
	status  string
	expires time.Time // zero: never
}

// decodeKey reads one record of keys.v1.
func decodeKey(id string, value []byte) (*apiKey, error) {
	var k keys.Key
	if err := json.Unmarshal(value, &k); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	out := &apiKey{id: id, tenant: k.TenantID, user: k.UserID, application: k.ApplicationID, label: "sha256:" + k.SHA256, status: k.Status}
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
		out.expires = *k.ExpiresAt
	}
	return out, nil
}

// keyTable finds keys by their hash. Lookups take no lock: the table is split
// by the hash's first byte into immutable maps behind atomic pointers, so that
// one changed key among a million copies only its own part. The parts are
// written by the table's goroutine alone (stream.Sink).
type keyTable struct {
	parts [256]atomic.Pointer[map[[sha256.Size]byte]*apiKey]
	byID  map[string]*apiKey // the writer's own
}

func newKeyTable() *keyTable { return &keyTable{byID: map[string]*apiKey{}} }

// find returns the record of a presented key, or nil. It compares hashes
// only, so its timing says nothing about keys.
func (t *keyTable) find(presented string) *apiKey {
	hash := sha256.Sum256([]byte(presented))
	part := t.parts[hash[0]].Load()
	if part == nil {
		return nil
	}
	return (*part)[hash]
}

// Replace implements stream.Sink.
func (t *keyTable) Replace(entries map[string]stream.Entry[*apiKey]) {
	var parts [256]map[[sha256.Size]byte]*apiKey
	t.byID = make(map[string]*apiKey, len(entries))
	for id, e := range entries {
		t.byID[id] = e.Value
		p := &parts[e.Value.hash[0]]
		if *p == nil {
			*p = map[[sha256.Size]byte]*apiKey{}
		}
		(*p)[e.Value.hash] = e.Value
	}
	for i := range parts {
		t.parts[i].Store(&parts[i])
	}
}

// Apply implements stream.Sink.
func (t *keyTable) Apply(c stream.Change[*apiKey]) {
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
	t.change(key.hash, func(part map[[sha256.Size]byte]*apiKey) { part[key.hash] = key })
}

func (t *keyTable) remove(old *apiKey) {
	if old == nil {
		return
	}
	t.change(old.hash, func(part map[[sha256.Size]byte]*apiKey) {
		// Another id may have taken the hash over; then it is not ours to take.
		if part[old.hash] == old {
			delete(part, old.hash)
		}
	})
}

func (t *keyTable) change(hash [sha256.Size]byte, edit func(map[[sha256.Size]byte]*apiKey)) {
	next := map[[sha256.Size]byte]*apiKey{}
	if current := t.parts[hash[0]].Load(); current != nil && *current != nil {
		next = maps.Clone(*current)
	}
	edit(next)
	t.parts[hash[0]].Store(&next)
}
