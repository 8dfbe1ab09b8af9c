package share

// Len is how many counters are remembered.
func (l *Limiter) Len() (n int) {
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		n += len(sh.entries)
		sh.mu.Unlock()
	}
	return n
}
