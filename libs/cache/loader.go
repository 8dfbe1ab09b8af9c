package cache

import (
	"context"
	"time"
)

// Loader asks the source for one key. Its context is not the caller's: it ends with LoadTimeout or with the Cache, and
// carries the values of the context of the caller that began the run. ErrNotFound is the answer "there is none"; every
// other error is judged by Options.IsFailure. A loader that ignores its context is left behind after LoadTimeout.
type Loader[V any] func(ctx context.Context, key string) (Loaded[V], error)

// Loaded is a source's answer. The zero value of each field but Value takes the family's setting.
type Loaded[V any] struct {
	Value V
	// TTL is how long this value is fresh, before jitter. 0 is Options.TTL, negative is NoStore.
	TTL time.Duration
	// StaleWhileRevalidate and StaleIfError replace the family's for this value; negative is none.
	StaleWhileRevalidate, StaleIfError time.Duration
	// NoStore hands the value to those who wait for this run and stores it nowhere; for UncacheableTTL the key's loads
	// are then joined in each process but take no lock in the fleet.
	NoStore bool
	// Private is for the caller alone that began the run; all others are released at once, and for UncacheableTTL
	// every caller loads for itself. It implies NoStore.
	Private bool
}

// Source says where a result came from.
type Source uint8

// Sources, from the cheapest.
const (
	HitL1     Source = iota + 1 // this process's memory
	HitL2                       // Redis
	Miss                        // this call began the load
	Coalesced                   // another call, here or in another process, did
	Stale                       // past its TTL, within StaleWhileRevalidate or StaleIfError
	Fallback                    // Options.Fallback: not the source's answer
)

// String is the source's name, as in metrics.
func (s Source) String() string {
	switch s {
	case HitL1:
		return "hit_l1"
	case HitL2:
		return "hit_l2"
	case Miss:
		return "miss"
	case Coalesced:
		return "coalesced"
	case Stale:
		return "stale"
	case Fallback:
		return "fallback"
	}
	return "unknown"
}

// Result is a value and what is known about it.
type Result[V any] struct {
	Value  V
	Source Source
	// Age is the time since the value was loaded; 0 for fallbacks and what was never stored.
	Age time.Duration
	// Fresh is the time left until it is stale; negative for stale ones.
	Fresh time.Duration
	// Err is, for stale values and fallbacks, the failure that they stand in for; nil while no load has failed.
	Err error
}
