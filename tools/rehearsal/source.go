package rehearsal

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// source is the stand-in: a load takes the key's latency, however many ask at once. It is safe for concurrent use.
type source struct {
	keys    []Key
	tally   []*keyTally
	version atomic.Int64
	factor  atomic.Uint64 // of the latency, as bits
	failing atomic.Bool
	armed   atomic.Bool
	begun   chan begunLoad
}

// begunLoad is a load under way.
type begunLoad struct {
	node *node
	key  int
}

func newSource(keys []Key, tally []*keyTally) *source {
	s := &source{keys: keys, tally: tally, begun: make(chan begunLoad, 1)}
	s.version.Store(1)
	s.slowBy(1)
	return s
}

func (s *source) slowBy(factor float64) { s.factor.Store(math.Float64bits(factor)) }
func (s *source) fail(on bool)          { s.failing.Store(on) }

// change makes what was loaded so far old, and returns the new version.
func (s *source) change() int64 { return s.version.Add(1) }

// nextLoad gets the next load that a node begins from now on.
func (s *source) nextLoad() <-chan begunLoad {
	s.armed.Store(true)
	return s.begun
}

var errFailing = errors.New("the source fails, as it was told to")

// load answers for a node; n is nil where no node is at risk.
func (s *source) load(ctx context.Context, n *node, key int) (Value, error) {
	s.tally[key].loadBegins()
	defer s.tally[key].loadEnds()
	if n != nil && s.armed.CompareAndSwap(true, false) {
		s.begun <- begunLoad{n, key}
	}
	version, failing := s.version.Load(), s.failing.Load()
	took := time.Duration(math.Float64frombits(s.factor.Load()) * float64(s.keys[key].Latency))
	if !pause(ctx, took) {
		return Value{}, context.Cause(ctx)
	}
	if failing {
		return Value{}, errFailing
	}
	return Value{version: version, pad: make([]byte, min(s.keys[key].Bytes, maxBytes))}, nil
}
