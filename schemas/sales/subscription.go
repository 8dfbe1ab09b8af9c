package sales

import "time"

// States of a subscription.
const (
	StatusActive = "active"
	StatusEnded  = "ended"
)

// Subscription is a customer's plan, in a version. It is kept when it has ended.
type Subscription struct {
	// ID is made by the control plane; its rules' ids begin with it.
	ID string `json:"id,omitempty"`
	// Version grows with every write of any subscription; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// Customer never changes.
	Customer string `json:"customer"`
	// Plan and PlanVersion may change, and keep what was used.
	Plan        string `json:"plan"`
	PlanVersion int64  `json:"planVersion,omitempty"`
	// CancelAtPeriodEnd ends the subscription with the period that was running
	// when it was set: at EndsAt.
	CancelAtPeriodEnd bool `json:"cancelAtPeriodEnd,omitempty"`

	// The rest is the control plane's.

	// Status is active or ended.
	Status string `json:"status,omitempty"`
	// StartedAt is when it began; EndsAt is the first instant after it, nil
	// while it has no end.
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndsAt    *time.Time `json:"endsAt,omitempty"`
	// Phases are the plan versions it has had, the oldest first; the last one is
	// Plan and PlanVersion.
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is a stretch of a subscription under one plan version, up to the From
// of the next.
type Phase struct {
	Plan        string    `json:"plan"`
	PlanVersion int64     `json:"planVersion"`
	From        time.Time `json:"from"`
}
