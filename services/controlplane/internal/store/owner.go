package store

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// mayChange refuses a write by owner (a subscription, empty for people) of what
// belongs to another: a rule or override that a
// subscription wrote is changed by that subscription alone, and one of people
// by no subscription.
func mayChange(e Entity, key, owner string, current []byte) error {
	if !e.Owned || current == nil {
		return nil
	}
	origin, err := originOf(current)
	switch {
	case err != nil:
		return err
	case origin == nil && owner == "" || origin != nil && origin.Subscription == owner:
		return nil
	case origin == nil:
		return api.NewProblem(http.StatusConflict, "already-exists",
			fmt.Sprintf("%s %s was not written by a subscription; delete it first", e.Kind, key))
	}
	return api.NewProblem(http.StatusConflict, "subscribed",
		fmt.Sprintf("the %s belongs to subscription %s (plan %s, version %d): change that", e.Kind, origin.Subscription, origin.Plan, origin.PlanVersion))
}

// originOf reads the origin of a stored rule or override, nil for one of people.
func originOf(document []byte) (*rules.Origin, error) {
	var doc struct{ Origin *rules.Origin }
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("decode origin: %w", err)
	}
	return doc.Origin, nil
}
