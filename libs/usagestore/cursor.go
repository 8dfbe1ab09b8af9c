package usagestore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Position is a place in the order of Search: newest first, then id and
// tenant descending by bytes, so that it is total.
type Position struct {
	// At is the event's time in ms since the Unix epoch.
	At       int64  `json:"t"`
	ID       string `json:"i"`
	TenantID string `json:"n"`
}

// PositionOf returns where an event stands.
func PositionOf(e usage.Event) Position {
	return Position{At: e.TS.UnixMilli(), ID: e.ID, TenantID: e.TenantID}
}

// Cursor encodes the position for clients, to whom it is opaque.
func (p Position) Cursor() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode cursor: %v", err)) // two strings and a number always encode
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor returns nil for an empty cursor, and ErrBadQuery for one that no
// store made.
func ParseCursor(cursor string) (*Position, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, fmt.Errorf("%w: cursor", ErrBadQuery)
	}
	var p Position
	if err := json.Unmarshal(b, &p); err != nil || p.ID == "" {
		return nil, fmt.Errorf("%w: cursor", ErrBadQuery)
	}
	return &p, nil
}

// PageLimit returns the limit in force.
func (q Query) PageLimit() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// Canonical returns the event as every store keeps it: time in UTC, cut to
// milliseconds.
func Canonical(e usage.Event) usage.Event {
	e.TS = e.TS.UTC().Truncate(time.Millisecond)
	return e
}

// OldestKept returns the first instant that Prune keeps: the start of the day
// keepDays before now's, UTC.
func OldestKept(keepDays int, now time.Time) time.Time {
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d-keepDays, 0, 0, 0, 0, time.UTC)
}
