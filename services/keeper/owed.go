package keeper

import (
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// owedFor is how long after a charge that a gateway still owed its counter is
// looked at: a journal is emptied within a second once Redis is there.
const owedFor = 10 * time.Minute

// owed are counters with charges or refunds that a gateway had only journaled
// when it told of them: nobody knew the totals then, and the counter may not be
// charged again, so that no event would ever tell of them. The fold holds it
// under its lock.
type owed map[string]owing

type owing struct {
	totals
	until time.Time // Kafka's clock
}

func (o owed) note(c usage.Charge, t totals, recorded time.Time) {
	if c.Pending {
		o[c.Counter] = owing{totals{metric: t.metric, limit: t.limit, chargedAt: t.chargedAt, eventID: t.eventID}, recorded.Add(owedFor)}
	}
}
