package controlplane

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// carryRule is carryCalendar for a rule that a caller has written, whose times
// it judges.
func (s *Service) carryRule(current []byte, r *rules.Rule, now time.Time) error {
	var before rules.Rule
	if current != nil {
		if err := json.Unmarshal(current, &before); err != nil {
			return fmt.Errorf("decode stored rule: %w", err)
		}
	}
	err := s.checkTerms(
		term{field: "validFrom", was: before.ValidFrom, is: r.ValidFrom},
		term{field: "validUntil", was: before.ValidUntil, is: r.ValidUntil, after: now.Add(-s.cfg.MaxClockSkew)},
	)
	if err != nil {
		return err
	}
	return carryCalendar(current, r, now)
}

// carryOverride judges the end of an override that a caller has written.
func (s *Service) carryOverride(current []byte, o *overrides.Override, now time.Time) error {
	var before overrides.Override
	if current != nil {
		if err := json.Unmarshal(current, &before); err != nil {
			return fmt.Errorf("decode stored override: %w", err)
		}
	}
	return s.checkTerms(term{field: "validUntil", was: before.ValidUntil, is: o.ValidUntil, after: now.Add(-s.cfg.MaxClockSkew)})
}

// carryCalendar fills what of a rule follows from the one before it, and is not
// the caller's to write.
func carryCalendar(current []byte, r *rules.Rule, now time.Time) error {
	var before *rules.Rule
	if current != nil {
		before = new(rules.Rule)
		if err := json.Unmarshal(current, before); err != nil {
			return fmt.Errorf("decode stored rule: %w", err)
		}
	}
	if err := rule.Carry(before, r, now); err != nil {
		return fmt.Errorf("carry calendar of rule %s: %w", r.ID, err)
	}
	return nil
}
