package controlplane

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// mayChange refuses what belongs to another: a rule or override that a
// subscription wrote is changed by that subscription alone, and one of people
// by no subscription.
func (w write) mayChange(current []byte) error {
	if !w.owned || current == nil {
		return nil
	}
	origin, err := originOf(current)
	switch {
	case err != nil:
		return err
	case origin == nil && w.owner == "" || origin != nil && origin.Subscription == w.owner:
		return nil
	case origin == nil:
		return newProblem(http.StatusConflict, "already-exists",
			fmt.Sprintf("%s %s was not written by a subscription; delete it first", w.kind, w.key))
	}
	return newProblem(http.StatusConflict, "subscribed",
		fmt.Sprintf("the %s belongs to subscription %s (plan %s, version %d): change that", w.kind, origin.Subscription, origin.Plan, origin.PlanVersion))
}

// originOf reads the origin of a stored rule or override, nil for one of people.
func originOf(document []byte) (*rules.Origin, error) {
	var doc struct{ Origin *rules.Origin }
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("decode origin: %w", err)
	}
	return doc.Origin, nil
}
