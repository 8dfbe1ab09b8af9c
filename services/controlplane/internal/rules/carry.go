package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// carryRule is rule.CarryStored for a rule that a caller has written, whose times
// it judges.
func (s *Handlers) carryRule(current []byte, r *rules.Rule, now time.Time) error {
	var before rules.Rule
	if current != nil {
		if err := json.Unmarshal(current, &before); err != nil {
			return fmt.Errorf("decode stored rule: %w", err)
		}
	}
	err := s.bounds.Check(
		api.BoundedTime{Field: "validFrom", Before: before.ValidFrom, Given: r.ValidFrom},
		api.BoundedTime{Field: "validUntil", Before: before.ValidUntil, Given: r.ValidUntil, After: now.Add(-s.bounds.MaxClockSkew)},
	)
	if err != nil {
		return err
	}
	return rule.CarryStored(current, r, now)
}

// carryOverride judges the end of an override that a caller has written.
func (s *Handlers) carryOverride(current []byte, o *overrides.Override, now time.Time) error {
	var before overrides.Override
	if current != nil {
		if err := json.Unmarshal(current, &before); err != nil {
			return fmt.Errorf("decode stored override: %w", err)
		}
	}
	return s.bounds.Check(api.BoundedTime{Field: "validUntil", Before: before.ValidUntil, Given: o.ValidUntil, After: now.Add(-s.bounds.MaxClockSkew)})
}
