package charge

import (
	"github.com/sluice-platform/sluice/libs/rule"
)

// Reasons of events; an open vocabulary.
const (
	QuotaExceeded    = "quota-exceeded"
	NotEntitled      = "not-entitled"
	IdentityMissing  = "identity-missing"
	StoreUnavailable = "store-unavailable"
	Restoring        = "restoring"
	CounterBroken    = "counter-broken"
	RuleUnreadable   = "rule-unreadable"
)

// Verdict is what was decided, and why.
type Verdict struct {
	Decision string // usage.DecisionAllow, DecisionDeny or DecisionShadow
	Outcome  Outcome
	// Status is of the gate's own answer; 0 forwards the request.
	Status int
	Reason string
	// Decisive is the rule that denied, or else the tightest; nil without one.
	Decisive *rule.Compiled
	// Violated are the ids of the rules that denied, the decisive first.
	Violated []string
	// Degraded: a counter could not be asked and its rule lets pass.
	Degraded bool
	// Loss is why it could not; nil where all counters were asked.
	Loss *Loss
}

// Loss is why a counter could not be asked, as it is reported.
type Loss struct {
	Reason   string // of the event
	Degraded string // Sluice-Degraded, where the request passes all the same
	Detail   string // of the 503
}

// What a counter can be lost by.
var (
	LossOfStore = &Loss{
		Reason: StoreUnavailable, Degraded: "store", Detail: "The counters cannot be reached; a policy forbids to go on without them.",
	}
	LossOfCounter = &Loss{
		Reason: CounterBroken, Degraded: "counter", Detail: "A counter holds something else; a policy forbids to go on without it.",
	}
	// LossOfQuotas: Redis answers, and may have lost what was sold.
	LossOfQuotas = &Loss{
		Reason: Restoring, Degraded: "store", Detail: "The quotas are being restored after a loss; a policy forbids to go on without them.",
	}
	// LossOfRule is of a rule that this build cannot read, such as one of a newer
	// control plane: it has no counter here.
	LossOfRule = &Loss{
		Reason: RuleUnreadable, Degraded: "rule", Detail: "A policy cannot be read by this gateway, and forbids to go on without it.",
	}
)
