package gateway

import (
	"log/slog"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// lossOfQuotas: Redis answers, and may have lost what was sold.
var lossOfQuotas = &loss{
	reason: reasonRestoring, degraded: "store", detail: "The quotas are being restored after a loss; a policy forbids to go on without them.",
}

// countWithoutQuotas lets the rules of quotas say what their loss means while
// they are being restored, and charges the rest, which lost nothing that matters.
// What passes uncounted is owed, and charged once the quotas are whole.
func (g *gate) countWithoutQuotas(x *exchange, matches []rule.Match, counters []limit.Counter, err error) {
	var (
		quotas, rates []rule.Match
		rest          []limit.Counter
	)
	for i, m := range matches {
		if m.Rule.Algorithm.Quota() {
			quotas = append(quotas, m)
		} else {
			rates, counters = append(rates, m), append(rest, counters[i])
		}
	}
	x.outage = true
	g.complain.Say(slog.LevelWarn, "quotas are being restored; their rules' onStoreLoss holds", "error", err)
	if g.fallBack(x, quotas, lossOfQuotas); x.verdict.status != 0 {
		return
	}
	x.uncounted = append(x.uncounted, quotas...)
	if len(rest) > 0 {
		g.askAbout(x, rates, rest)
	}
}
