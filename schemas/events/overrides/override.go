package overrides

import (
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Topic is the name of the topic, without a deployment prefix.
const Topic = "overrides.v1"

// Override is one record of overrides.v1. Absent numbers are nil, since 0,
// unlimited and absent are three things.
type Override struct {
	// ID follows from subject, metric and horizon, as libs/rule's OverrideID
	// writes it: there is one override for each.
	ID string `json:"id"`
	// Version grows with every write of any override; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// Reason is for people: why this subject is an exception.
	Reason string `json:"reason,omitempty"`
	// Subject is whose numbers change; its value is exact.
	Subject rules.Subject `json:"subject"`
	Metric  string        `json:"metric"`
	// Window or Period narrow the override to rates of that window, or quotas of
	// that period. Without either it holds for every horizon of the metric.
	Window string `json:"window,omitempty"`
	Period string `json:"period,omitempty"`
	// Limit takes the place of the rule's limit; nil only when Unlimited.
	Limit *int64 `json:"limit,omitempty"`
	// Burst takes the place of the rule's burst (gcra, tokenBucket). Absent, a
	// burst that equals the rule's limit follows the new limit, another stays.
	Burst     *int64 `json:"burst,omitempty"`
	Unlimited bool   `json:"unlimited,omitempty"`
	// ValidUntil is the first instant that the rule's own numbers hold again;
	// nil is never.
	ValidUntil *time.Time `json:"validUntil,omitempty"`
	// Origin is of overrides that a subscription wrote; nil for those of people.
	Origin *rules.Origin `json:"origin,omitempty"`
}
