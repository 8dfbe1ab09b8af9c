package limit

import (
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

// Counter is one counter of a request and how it is judged this time.
type Counter struct {
	// Key is the counter's identity (schemas/redis/KEYS.md) without a
	// deployment's prefix. A renewing quota's ends before its calendar, as in
	// {t:acme}:t::reports:quota; stores append the period's name.
	Key       string
	Algorithm Algorithm
	// Limit is units per Window or period; 0 denies everything. Prepaid quotas
	// have Granted instead.
	Limit int64
	// Burst is the capacity of gcra and tokenBucket in units, at least 1 unless
	// Limit is 0.
	Burst int64
	// Unlimited counts and never denies; Limit, Burst and Granted mean nothing
	// then.
	Unlimited bool
	// Window is of rates; whole seconds, up to MaxWindow.
	Window time.Duration
	// Calendar is of renewing quotas. In a period that a change of calendar
	// made short, Limit counts for its share (period.Bounds.Prorate).
	Calendar period.Calendar
	// Prepaid says of an OverdraftQuota that it is a prepaid one.
	Prepaid bool
	// Granted is all that was ever granted to a prepaid quota; it only grows.
	Granted int64
	// Rollover is the most units that a renewing quota carries over from the
	// last period, where they were left; they are spent first, and are carried
	// once. 0 is none. What is carried is fixed by a period's first charge.
	Rollover int64
	// Since is when a quota with Rollover was first granted. A last period in
	// which nothing was charged leaves its units only if it ended after Since;
	// of the zero Since it leaves none.
	Since time.Time
	// Cost is the units to take, up to MaxInteger; 0 only looks. A negative
	// cost gives back, never below nothing used, and is never denied itself.
	Cost int64
	// At is of refunds and of Force: when the units were used. A window that
	// has ended since stays as it was; a bucket takes back what it has not refilled
	// since (GivesBack); a quota's period is that of At. Zero is now.
	At time.Time
	// Shadow counters are judged and charged each alone: they deny nothing, and
	// are charged when they would pass themselves. Their Key must be their own,
	// or what they count would be enforced.
	Shadow bool
	// Force charges whatever the state is and whatever other counters say: for
	// settling what was used already. The numbers stay exact beyond the limit.
	Force bool
}

// Apart reports whether the counter is judged alone, outside all or nothing.
func (c *Counter) Apart() bool { return c.Shadow || c.Force }

// GivesBack returns how many units a refund gives back at a time, by the store's
// clock: of a bucket no more than it has not refilled since they were used. What
// was taken moves the time at which the bucket is full, by at most that much less
// than it did as time has passed since. Rounded up, since units are whole.
func (c *Counter) GivesBack(now time.Time) int64 {
	units := max(0, -c.Cost)
	if !c.Algorithm.Bucket() || c.At.IsZero() {
		return units
	}
	return max(0, units-Refilled(c.Limit, c.Window, now.Sub(c.At)))
}

// Capacity is the largest cost that a rested counter lets pass.
func (c *Counter) Capacity() int64 {
	switch {
	case c.Algorithm.Bucket():
		return c.Burst
	case c.Wallet():
		return c.Granted
	}
	return c.Limit
}

// Wallet reports a prepaid quota, with overdraft or without.
func (c *Counter) Wallet() bool {
	return c.Algorithm == PrepaidQuota || c.Algorithm == OverdraftQuota && c.Prepaid
}

// Renews reports a quota that counts in calendar periods.
func (c *Counter) Renews() bool { return c.Algorithm.Quota() && !c.Wallet() }

// Rolls reports a quota that carries over what its last period left.
func (c *Counter) Rolls() bool {
	return c.Renews() && c.Rollover > 0 && c.Calendar.Unit() != period.UnitNever
}

// Overdraws reports a quota that may go below zero once.
func (c *Counter) Overdraws() bool { return c.Algorithm == OverdraftQuota }

// Time returns when the counter's units count, at a clock that shows now.
func (c *Counter) Time(now time.Time) time.Time {
	if c.At.IsZero() || c.Cost >= 0 && !c.Force {
		return now
	}
	return c.At
}
