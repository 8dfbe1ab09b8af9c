package reconcile

import (
	"fmt"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// The places, as reports name them.
const (
	placeRedis      = "redis"
	placeCheckpoint = "checkpoint"
	placeEvents     = "events"
	placeWallet     = "wallet"
	placeLedger     = "ledger"
)

// compare says where the places differ on a counter.
func (r *run) compare(c *counter) []Difference {
	var found []Difference
	add := func(a, b string, x, y Numbers, cause string) {
		found = append(found, Difference{Counter: c.name, Between: [2]string{a, b}, Have: [2]Numbers{x, y}, Cause: cause})
	}
	counted, kept := c.redis, c.checkpoint
	kept.Carried = counted.Carried // fixed by a period's first charge, and not summed
	if r.live(c) && counted != kept {
		add(placeRedis, placeCheckpoint, numbers(counted), numbers(kept), cause(counted, kept))
	}
	if whole := c.redis.Max(c.checkpoint); r.hasEvents(c) && c.events != whole.Consumed-whole.Refunded {
		add(placeRedis, placeEvents, numbers(whole), Numbers{Net: c.events}, missing(c.events-(whole.Consumed-whole.Refunded)))
	}
	if !c.wallet {
		return found
	}
	l := c.ledger
	if l.granted != l.sumGranted || l.forfeited != l.sumForfeited {
		add(placeWallet, placeLedger, Numbers{Granted: l.granted, Forfeited: l.forfeited}, Numbers{Granted: l.sumGranted, Forfeited: l.sumForfeited},
			"the wallet's row and its ledger were not written together: somebody changed one of them by hand")
	}
	if n := c.redis.Max(c.checkpoint).Forfeited; n != l.forfeited {
		add(placeRedis, placeLedger, Numbers{Forfeited: n}, Numbers{Forfeited: l.forfeited},
			"a grant has ended in one of them only: the keeper ends it in the other when it looks next")
	}
	return found
}

func numbers(t redisstore.Totals) Numbers {
	return Numbers{Consumed: t.Consumed, Refunded: t.Refunded, Forfeited: t.Forfeited, Net: t.Consumed - t.Refunded}
}

// cause of a difference between Redis and a checkpoint that has lasted.
func cause(counted, kept redisstore.Totals) string {
	without := counted
	without.Refunded = kept.Refunded
	switch {
	case without == kept && counted.Refunded > kept.Refunded:
		return "given back, and not checkpointed: what refundOn gives back is checkpointed with the counter's next charge, and lost if Redis loses the counter before; or the keeper is behind"
	case counted.Max(kept) == counted:
		return "charged, and not checkpointed: the keeper is behind, or the events of a gateway have not come"
	case counted == (redisstore.Totals{}):
		return "Redis lost the counter: a restore brings it back, or the next call of a gateway that knows it"
	case counted.Max(kept) == kept:
		return "Redis knows less than was charged: it was restored from less, or somebody wrote the key"
	}
	return "each knows of charges that the other does not"
}

// missing says what is likely where the events come to more or less.
func missing(units int64) string {
	if units < 0 {
		return fmt.Sprintf("%d units have no event in the search store: the indexer is behind, or events were dropped or are dead letters (usage-dead-letters.v1)", -units)
	}
	return fmt.Sprintf("events tell of %d units more than were charged: charges of requests that passed while Redis was away are still owed, or were lost with a gateway's disk", units)
}
