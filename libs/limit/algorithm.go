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
	// SlidingWindow counts in aligned windows, too, and judges by an estimate:
	// the running window's count and the part of the last one's that the window
	// ending now still covers.
	SlidingWindow
	// TokenBucket holds Burst tokens and refills Limit of them per Window. It
	// differs from GCRA when Limit or Burst change: its tokens stay, where GCRA
	// keeps its theoretical arrival time.
	TokenBucket
	// PrepaidQuota counts against what was granted, and never renews.
	PrepaidQuota
	// OverdraftQuota is a quota, prepaid or renewing (Counter.Prepaid), that
	// lets one request pass below zero: any cost passes while the balance is
	// positive, and nothing after that. It counts where the quota it is of does.
	OverdraftQuota
)

var algorithmNames = [...]string{
	GCRA: usage.AlgoGCRA, FixedWindow: usage.AlgoFixedWindow, RenewingQuota: usage.AlgoRenewingQuota,
	SlidingWindow: usage.AlgoSlidingWindow, TokenBucket: usage.AlgoTokenBucket,
	PrepaidQuota: usage.AlgoPrepaidQuota, OverdraftQuota: usage.AlgoOverdraftQuota,
}

// String returns the algorithm's name in usage events.
func (a Algorithm) String() string {
	if a == 0 || int(a) >= len(algorithmNames) {
		return "UNKNOWN"
	}
	return algorithmNames[a]
}

// Quota reports whether the algorithm counts what is sold: its totals are
// checkpointed, and it has a calendar or a balance instead of a window.
func (a Algorithm) Quota() bool {
	return a == RenewingQuota || a == PrepaidQuota || a == OverdraftQuota
}

// Bucket reports whether the algorithm refills steadily up to a burst.
func (a Algorithm) Bucket() bool { return a == GCRA || a == TokenBucket }
