package api

import (
	"fmt"
	"time"
)

// Instant writes a time as messages have it.
func Instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeBounds bounds the instants in bodies, by the control plane's clock.
type TimeBounds struct {
	// MaxClockSkew is how far a caller's clock may be off.
	MaxClockSkew time.Duration
	// MaxAhead is how far in the future an instant may lie.
	MaxAhead time.Duration
	Now      func() time.Time
}

// BoundedTime is an instant in a body that says when something holds.
type BoundedTime struct {
	Field string
	// Before is the stored one, nil if there is none: what GET answered can be
	// PUT back, however long ago it ended.
	Before, Given *time.Time
	// After is the time that Given must lie behind; zero is any.
	After time.Time
}

// Check refuses new instants that a caller can hardly mean.
func (b TimeBounds) Check(times ...BoundedTime) error {
	var c Checks
	for _, t := range times {
		if t.Given == nil || t.Before != nil && t.Before.Equal(*t.Given) {
			continue
		}
		if message := b.Judge(t); message != "" {
			c.Add(t.Field, "%s", message)
		}
	}
	return c.Problem()
}

// Judge says what is wrong with t.Given, which is not nil; empty if nothing is.
func (b TimeBounds) Judge(t BoundedTime) string {
	now := b.Now()
	latest := now.Add(b.MaxAhead)
	switch {
	case !t.After.IsZero() && !t.Given.After(t.After):
		return fmt.Sprintf("must be after %s: it is %s here, and clocks may be off by %s (controlplane.maxClockSkew); given is %s",
			Instant(t.After), Instant(now), b.MaxClockSkew, Instant(*t.Given))
	case t.Given.After(latest):
		return fmt.Sprintf("must be %s at the latest (controlplane.maxAhead), or be left out; given is %s", Instant(latest), Instant(*t.Given))
	}
	return ""
}
