package reserve

import (
	"context"
	"fmt"
)

// Caller is who asks for a reservation that there may be. It is there for whoever
// made it, and for nobody else of the tenant: an id may be guessed, or seen.
type Caller struct {
	Tenant, User, Application string
	// APIKey is the id of the key that proved it, empty without one. It matters
	// where a rule counted by the key; otherwise a new key may end what an old one
	// began.
	APIKey string
	// Operator: whoever runs the gate, for whom all of the tenant's are there.
	Operator bool
}

// made reports whether the record is the caller's.
func (c Caller) made(r *Record) bool {
	if c.Operator {
		return true
	}
	return r.User == c.User && r.Application == c.Application && (r.APIKey == "" || r.APIKey == c.APIKey)
}

// callers is the reservation that stands there, where it is the caller's. Of one whose
// record was lost nobody knows whose it was: it can be looked at, not ended.
func (s *standing) callers(n name, c Caller) (Reservation, bool) {
	if s.record != nil && !c.made(s.record) {
		return Reservation{}, false
	}
	return s.reservation(n)
}

// attempted reports whether there are attempts by the id, all of them the
// caller's.
func (b *Book) attempted(ctx context.Context, n name, c Caller) (bool, error) {
	all, err := b.o.Client.HGetAll(ctx, b.o.KeyPrefix+n.records()).Result()
	if err != nil {
		return false, fmt.Errorf("look whose attempts reservation %s has: %w", n.id, unavailable(err))
	}
	found := false
	for attempt, text := range all {
		if attempt == toldField {
			continue
		}
		r, err := decodeRecord([]byte(text))
		if err != nil || !c.made(r) {
			return false, err
		}
		found = true
	}
	return found, nil
}
