package charge

import "github.com/prometheus/client_golang/prometheus"

// Outcome is the label of ratelimit_decisions_total.
type Outcome uint8

// Outcomes of decisions.
const (
	Allow Outcome = iota
	Deny
	Shadow
	Error
	Outcomes
)

// OutcomeNames are the labels.
var OutcomeNames = [Outcomes]string{"allow", "deny", "shadow", "error"}

// Policy is what was done when a counter could not be asked.
type Policy uint8

// Policies, as onStoreLoss of rules names them.
const (
	Open Policy = iota
	Closed
	Local
	Policies
)

// PolicyNames are the labels.
var PolicyNames = [Policies]string{"open", "closed", "local"}

// Correction is what became of a cost that a service's answer stated.
type Correction uint8

// What becomes of such a cost. Malformed and TooLarge ones are ignored by the gateway.
const (
	Charged Correction = iota
	Refunded
	Malformed
	TooLarge
	Owed
	Lost
	Corrections
)

// CorrectionNames are the labels.
var CorrectionNames = [Corrections]string{"charged", "refunded", "malformed", "too-large", "owed", "lost"}

// Metrics holds each counter resolved, so that no request looks one up by its
// labels.
type Metrics struct {
	Fallback        [Policies]prometheus.Counter
	Corrections     [Corrections]prometheus.Counter
	Broken, Refunds prometheus.Counter
}
