package limit

import "github.com/sluice-platform/sluice/schemas/events/usage"

// Algorithm is how a counter judges.
type Algorithm uint8

// Algorithms. The zero value is none and is refused by stores.
const (
	// GCRA spaces requests: Limit per Window, Burst at one instant; the
	// virtual scheduling form of ITU-T I.371's generic cell rate algorithm.
	GCRA Algorithm = iota + 1
	// FixedWindow counts in windows aligned to multiples of Window since the epoch.
	FixedWindow
	// RenewingQuota counts in calendar periods.
	RenewingQuota
)

// String returns the algorithm's name in usage events.
func (a Algorithm) String() string {
	switch a {
	case GCRA:
		return usage.AlgoGCRA
	case FixedWindow:
		return usage.AlgoFixedWindow
	case RenewingQuota:
		return usage.AlgoRenewingQuota
	}
	return "UNKNOWN"
}

// Quota reports whether the algorithm counts what is sold: its totals are
// checkpointed and its period is a calendar's, not a window's.
func (a Algorithm) Quota() bool { return a == RenewingQuota }
