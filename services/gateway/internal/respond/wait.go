package respond

import (
	"math"

	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
)

// Bounds, in seconds, of what jitter adds at most.
const (
	leastJitter = 1
	mostJitter  = 30
)

// retryAfter is the wait with jitter on top: clients that are denied until the same
// instant come back spread behind it, and none before it.
func retryAfter(id string, judged []charge.Judgement, share float64) (seconds int64, ok bool) {
	seconds, ok = charge.Wait(judged)
	if !ok {
		return 0, false
	}
	return seconds + jitter(id, seconds, share), true
}

// jitter is 0 to share × wait whole seconds, leastJitter to mostJitter at the
// longest. It follows from the decision's id, which is random, so that the
// answer to a decision is always the same.
func jitter(id string, wait int64, share float64) int64 {
	if share <= 0 {
		return 0
	}
	longest := max(int64(math.Ceil(min(float64(wait)*share, mostJitter))), leastJitter)
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	hash := uint64(offset)
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * prime
	}
	// The low bits of FNV mix least; the range is far below 2^32.
	return int64((hash >> 32) % uint64(longest+1))
}
