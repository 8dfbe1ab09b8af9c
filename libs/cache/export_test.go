package cache

import "time"

// Waiters is how many callers wait for the key's read flight.
func Waiters[V any](c *Cache[V], key string) int {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[reading][key]; f != nil {
		return f.waiters
	}
	return 0
}

// Paused reports whether the key's read flight waits for another process.
func Paused[V any](c *Cache[V], key string) bool {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flights[reading][key]
	return f != nil && f.paused
}

// Refreshing reports whether the key has a refresh flight.
func Refreshing[V any](c *Cache[V], key string) bool {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flights[refreshing][key] != nil
}

// Listening reports whether the subscription stands.
func Listening[V any](c *Cache[V]) bool { return c.listening.Load() }

// Scripts' names to Redis.
var (
	GetHash   = getScript.Hash()
	WriteHash = writeScript.Hash()
)

// Memory is how long failures in a row are counted.
const Memory time.Duration = failureMemory

// Heard reports whether an invalidation of the key was heard.
func Heard[V any](c *Cache[V], key string) bool {
	_, ok := c.barriers.GetIfPresent(key)
	return ok
}
