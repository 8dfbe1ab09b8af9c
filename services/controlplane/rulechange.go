package controlplane

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// carryRule fills what of a rule follows from the one before it, and is not the
// caller's to write.
func carryRule(current []byte, r *rules.Rule, now time.Time) error {
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
