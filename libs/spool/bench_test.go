package spool

import (
	"fmt"
	"testing"
)

// BenchmarkAppend is what a request pays: one event of 450 bytes, with the
// ring full (each append drops one) and not.
func BenchmarkAppend(b *testing.B) {
	event := make([]byte, 450)
	for _, shards := range []int{1, 4} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir(), SizeBytes: 64 << 20, Shards: shards})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // the benchmark is over
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s.AppendKeyed("tenant", event)
				}
			})
		})
	}
}

// BenchmarkAppendAndRead has the reader at work beside.
func BenchmarkAppendAndRead(b *testing.B) {
	event := make([]byte, 450)
	s, err := Open(Options{Dir: b.TempDir(), SizeBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the benchmark is over
	b.ReportAllocs()
	for range b.N {
		s.AppendKeyed("tenant", event)
		if s.Stats().Pending > 500 {
			_, mark := s.Next(500)
			s.Advance(mark)
		}
	}
}
