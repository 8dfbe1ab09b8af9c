package reconcile

import (
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/period"
)

// counter is what the places say of one.
type counter struct {
	name       string
	tenant     string
	bounds     period.Bounds // zero of a wallet, and of a name that is none
	redis      redisstore.Totals
	checkpoint redisstore.Totals
	events     int64
	// wallet is true where the ledger knows it.
	wallet bool
	ledger ledger
}

// ledger is what a wallet's row and the sum of its ledger say.
type ledger struct {
	granted, forfeited       int64
	sumGranted, sumForfeited int64
	since                    time.Time // of its first entry
}

// keysOutlive is how long a period's keys are kept after its end, less the time
// a reader may take (schemas/redis/KEYS.md).
const keysOutlive = 72*time.Hour - 10*time.Minute

func newCounter(name string) *counter {
	c := &counter{name: name}
	parts := strings.Split(name, ":")
	if n := len(parts); n >= 2 {
		// A name of no period leaves the bounds empty.
		c.bounds, _ = period.Parse(parts[n-2] + ":" + parts[n-1])
	}
	if rest, ok := strings.CutPrefix(name, "{t:"); ok {
		escaped, _, _ := strings.Cut(rest, "}")
		if tenant, err := url.PathUnescape(escaped); err == nil {
			c.tenant = tenant
		}
	}
	return c
}

// live reports whether Redis should hold the counter still.
func (r *run) live(c *counter) bool {
	return c.bounds.End.IsZero() || r.Now().Before(c.bounds.End.Add(keysOutlive))
}

// hasEvents reports whether the search store keeps everything that was charged.
func (r *run) hasEvents(c *counter) bool {
	switch {
	case c.wallet:
		return !c.ledger.since.Before(r.EventsSince)
	case c.bounds.Start.IsZero():
		return false // it began nobody knows when
	}
	return !c.bounds.Start.Before(r.EventsSince)
}

type run struct {
	Sources
	Options
}
