package cache

import "sync"

// retryReserve is what a budget starts with and its cap: enough for a mishap, too little for a storm.
const retryReserve = 10

// retryBudget keeps retries to a share of the loads, whatever the rate: a source that fails all loads gets 1 + ratio
// calls a load and not 1 + retries. It is safe for concurrent use.
type retryBudget struct {
	ratio float64

	mu     sync.Mutex
	tokens float64
}

// deposit counts one load.
func (b *retryBudget) deposit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(retryReserve, b.tokens+b.ratio)
}

// withdraw reports whether a retry may be made.
func (b *retryBudget) withdraw() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
