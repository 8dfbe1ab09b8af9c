package rule

import (
	"runtime"
	"sync"
	"weak"
)

// interner keeps one *V a key, for as long as somebody holds it: a million
// rules of a plan share what the plan says. Safe for concurrent use.
type interner[K comparable, V any] struct {
	mu    sync.RWMutex
	known map[K]weak.Pointer[V]
}

// get returns the value of k, nil when nobody holds one.
func (in *interner[K, V]) get(k K) *V {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.known[k].Value()
}

// put makes v the value of k, unless another is already: that is returned then.
// v must not be reachable from k.
func (in *interner[K, V]) put(k K, v *V) *V {
	in.mu.Lock()
	defer in.mu.Unlock()
	if first := in.known[k].Value(); first != nil {
		return first
	}
	if in.known == nil {
		in.known = map[K]weak.Pointer[V]{}
	}
	in.known[k] = weak.Make(v)
	runtime.AddCleanup(v, in.forget, k)
	return v
}

func (in *interner[K, V]) forget(k K) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.known[k].Value() == nil {
		delete(in.known, k)
	}
}
