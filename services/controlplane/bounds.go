package controlplane

import (
	"fmt"
	"time"
)

// instant writes a time as messages have it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// term is an instant in a body that says when something holds.
type term struct {
	field string
	// was is what is stored, nil if nothing is: what GET answered can be PUT
	// back, however long ago it ended.
	was, is *time.Time
	// after is the time that it must lie behind; zero is any.
	after time.Time
}

// checkTerms refuses new instants that a caller can hardly mean.
func (s *Service) checkTerms(terms ...term) error {
	var found []FieldError
	for _, t := range terms {
		if t.is == nil || t.was != nil && t.was.Equal(*t.is) {
			continue
		}
		if message := s.misses(t); message != "" {
			found = append(found, FieldError{"body", t.field, message})
		}
	}
	if found == nil {
		return nil
	}
	return invalid(found...)
}

// misses says what is wrong with an instant, empty if nothing is.
func (s *Service) misses(t term) string {
	now := s.deps.Now()
	latest := now.Add(s.cfg.MaxAhead)
	switch {
	case !t.after.IsZero() && !t.is.After(t.after):
		return fmt.Sprintf("must be after %s: it is %s here, and clocks may be off by %s (controlplane.maxClockSkew); given is %s",
			instant(t.after), instant(now), s.cfg.MaxClockSkew, instant(*t.is))
	case t.is.After(latest):
		return fmt.Sprintf("must be %s at the latest (controlplane.maxAhead), or be left out; given is %s", instant(latest), instant(*t.is))
	}
	return ""
}
