package gateway

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/grants"
)

// decodeGrants reads one record of grants.v1.
func decodeGrants(id string, value []byte) (grants.Wallet, error) {
	var w grants.Wallet
	if err := json.Unmarshal(value, &w); err != nil {
		return w, fmt.Errorf("read wallet: %w", err)
	}
	switch {
	case w.ID != id || id != grants.WalletID(w.TenantID, w.Metric):
		return w, fmt.Errorf("record %q holds wallet %q of %q, %q", id, w.ID, w.TenantID, w.Metric)
	case w.Granted < 0 || w.Granted > limit.MaxInteger:
		return w, fmt.Errorf("granted is %d", w.Granted)
	}
	return w, nil
}

// walletKey is how a request finds its wallet without making a string.
type walletKey struct{ tenant, metric string }

func keyOf(w grants.Wallet) walletKey { return walletKey{w.TenantID, w.Metric} }

type walletMap map[walletKey]*atomic.Int64

// grantTable says what was granted to each wallet. Look-ups take no lock: the
// wallets lie in immutable maps behind atomic pointers, of which a new wallet
// copies one, and a top-up none. They are written by the table's goroutine
// alone (stream.Sink).
type grantTable struct {
	seed  maphash.Seed
	parts [256]atomic.Pointer[walletMap]
	byID  map[string]walletKey // the writer's own
}

func newGrantTable() *grantTable {
	return &grantTable{seed: maphash.MakeSeed(), byID: map[string]walletKey{}}
}

func (t *grantTable) part(k walletKey) *atomic.Pointer[walletMap] {
	h := maphash.String(t.seed, k.tenant) ^ maphash.String(t.seed, k.metric)*0x9e3779b97f4a7c15
	return &t.parts[h>>56]
}

// of returns what was granted, 0 to a wallet that nothing was granted to.
func (t *grantTable) of(tenant, metric string) int64 {
	k := walletKey{tenant, metric}
	if part := t.part(k).Load(); part != nil {
		if granted := (*part)[k]; granted != nil {
			return granted.Load()
		}
	}
	return 0
}

// Replace implements stream.Sink.
func (t *grantTable) Replace(entries map[string]stream.Entry[grants.Wallet]) {
	parts := map[*atomic.Pointer[walletMap]]walletMap{}
	for i := range t.parts {
		parts[&t.parts[i]] = walletMap{}
	}
	t.byID = make(map[string]walletKey, len(entries))
	for id, e := range entries {
		k := keyOf(e.Value)
		t.byID[id] = k
		granted := new(atomic.Int64)
		granted.Store(e.Value.Granted)
		parts[t.part(k)][k] = granted
	}
	for at, part := range parts {
		at.Store(&part)
	}
}

// Apply implements stream.Sink.
func (t *grantTable) Apply(c stream.Change[grants.Wallet]) {
	if c.Deleted {
		k, known := t.byID[c.Key]
		delete(t.byID, c.Key)
		if known {
			t.change(k, func(part walletMap) { delete(part, k) })
		}
		return
	}
	k := keyOf(c.Entry.Value)
	t.byID[c.Key] = k
	if part := t.part(k).Load(); part != nil {
		if granted := (*part)[k]; granted != nil {
			granted.Store(c.Entry.Value.Granted)
			return
		}
	}
	granted := new(atomic.Int64)
	granted.Store(c.Entry.Value.Granted)
	t.change(k, func(part walletMap) { part[k] = granted })
}

func (t *grantTable) change(k walletKey, edit func(walletMap)) {
	next := walletMap{}
	if current := t.part(k).Load(); current != nil {
		next = maps.Clone(*current)
	}
	edit(next)
	t.part(k).Store(&next)
}

// counter is what a winner charges, of a prepaid one with what was granted.
func (g *gate) counter(m *rule.Match, cost int64) limit.Counter {
	c := m.Counter(cost)
	if c.Prepaid {
		c.Granted = g.grants.of(m.Wallet())
	}
	return c
}
