package quotaevents

import "github.com/sluice-platform/sluice/schemas/events/rules"

// Reached is the data of TypeThresholdReached.
type Reached struct {
	// TenantID is empty for a counter that belongs to no tenant.
	TenantID string        `json:"tenantId,omitempty"`
	Subject  rules.Subject `json:"subject"`
	Metric   string        `json:"metric"`
	// Period is the calendar and the period's id in it, such as month:202607;
	// empty for a wallet.
	Period string `json:"period,omitempty"`
	// Counter is the counter's identity, as in usage.v1.
	Counter   string    `json:"counter"`
	Threshold Threshold `json:"threshold"`
	// At is the use, in units, at which the threshold lies.
	At int64 `json:"at"`
	// Limit is what the charge was judged by; nil is unlimited.
	Limit *int64 `json:"limit,omitempty"`
	// Used is consumed - refunded + forfeited after the charge.
	Used      int64 `json:"used"`
	Consumed  int64 `json:"consumed"`
	Refunded  int64 `json:"refunded"`
	Forfeited int64 `json:"forfeited,omitempty"`
	// DecisionID is the decision whose charge showed it.
	DecisionID string `json:"decisionId"`
}

// Threshold is one of a rule's: Percent of the limit, or Absolute units; the
// other one is 0.
type Threshold struct {
	Percent  int64 `json:"percent,omitempty"`
	Absolute int64 `json:"absolute,omitempty"`
}

// Test is the data of TypeTest.
type Test struct {
	Webhook string `json:"webhook"`
	Message string `json:"message"`
}
