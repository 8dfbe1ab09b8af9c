package rule

import "sync/atomic"

// numShards makes growth at a million items copy some thousands of pointers.
const (
	numShards = 256
	minSlots  = 8 // of a shard; a power of two
)

// set is an open-addressed hash table that one writer changes and any number
// of readers walk without a lock. Several items may have one hash; the reader
// tells them apart. The zero value is empty.
//
// A slot's hash never changes once its item is there: removal leaves a mark
// behind, and growth makes new slots and swaps them in. So a reader sees each
// item that was there when it began and was not removed meanwhile.
type set[T any] struct {
	shards [numShards]atomic.Pointer[slots[T]]
	// The writer's own.
	shard [numShards]struct{ used, live int32 }
	gone  *T // marks a removed item
}

type slots[T any] []slot[T]

type slot[T any] struct {
	hash uint64 // written before item, never after
	item atomic.Pointer[T]
}

func newSet[T any]() *set[T] { return &set[T]{gone: new(T)} }

// walk is a reader's way through the items of one hash.
type walk[T any] struct {
	slots slots[T]
	hash  uint64
	at    uint64
	gone  *T
}

func (s *set[T]) find(hash uint64) walk[T] {
	w := walk[T]{hash: hash, at: hash, gone: s.gone}
	if p := s.shards[hash>>56].Load(); p != nil {
		w.slots = *p
	}
	return w
}

// next returns the next item of the hash, nil after the last.
func (w *walk[T]) next() *T {
	if len(w.slots) == 0 {
		return nil
	}
	for {
		slot := &w.slots[w.at&uint64(len(w.slots)-1)]
		item := slot.item.Load()
		if item == nil {
			return nil
		}
		w.at++
		if slot.hash == w.hash && item != w.gone {
			return item
		}
	}
}

// add puts an item in; the writer only.
func (s *set[T]) add(hash uint64, item *T) {
	i := hash >> 56
	count := &s.shard[i]
	var all slots[T]
	if p := s.shards[i].Load(); p != nil {
		all = *p
	}
	if int(count.used+1)*4 > len(all)*3 {
		all = s.rebuilt(all, int(count.live)+1)
		count.used = count.live
		all.put(hash, item)
		s.shards[i].Store(&all)
	} else {
		all.put(hash, item)
	}
	count.used++
	count.live++
}

// rebuilt copies the live items into slots of which at most half are taken.
func (s *set[T]) rebuilt(old slots[T], n int) slots[T] {
	size := minSlots
	for size < 2*n {
		size *= 2
	}
	next := make(slots[T], size)
	for i := range old {
		if item := old[i].item.Load(); item != nil && item != s.gone {
			next.put(old[i].hash, item)
		}
	}
	return next
}

// put takes the first free slot; there is one.
func (all slots[T]) put(hash uint64, item *T) {
	for at := hash; ; at++ {
		slot := &all[at&uint64(len(all)-1)]
		if slot.item.Load() == nil {
			slot.hash = hash
			slot.item.Store(item)
			return
		}
	}
}

// swap puts next where old is, nil to remove it, and reports whether old was
// there; the writer only.
func (s *set[T]) swap(hash uint64, old, next *T) bool {
	i := hash >> 56
	p := s.shards[i].Load()
	if p == nil {
		return false
	}
	for at := hash; ; at++ {
		slot := &(*p)[at&uint64(len(*p)-1)]
		switch slot.item.Load() {
		case nil:
			return false
		case old:
			if next == nil {
				next = s.gone
				s.shard[i].live--
			}
			slot.item.Store(next)
			return true
		}
	}
}

// all calls yield for each item, in no order; beside a writer it may miss or
// repeat what is being moved.
func (s *set[T]) all(yield func(*T) bool) bool {
	for i := range s.shards {
		p := s.shards[i].Load()
		if p == nil {
			continue
		}
		for j := range *p {
			if item := (*p)[j].item.Load(); item != nil && item != s.gone && !yield(item) {
				return false
			}
		}
	}
	return true
}
