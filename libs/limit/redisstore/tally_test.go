package redisstore

import (
	"fmt"
	"testing"
)

// BenchmarkLearn is what an answer's totals cost to remember, at 10,000 charges a
// second of a thousand quotas.
func BenchmarkLearn(b *testing.B) {
	m := newMemory(defaultRemembered)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("{t:tenant-%d}:t::requests:quota:month:202611:c", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.learn(keys[i%len(keys)], seen{consumed: int64(i), at: int64(i) * 100}, "marker", Units{Consumed: 1})
	}
}
