package rehearsal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// maxUnderWay bounds the reads that wait at once: beyond it they are counted as not sent, for the sake of the machine.
const maxUnderWay = 50_000

// traffic reads the keys by their weights, each when it is due, whether earlier ones have returned or not.
type traffic struct {
	fleet   fleet
	tally   []*keyTally
	upTo    []float64 // of each key, the weights up to and with it
	rate    float64
	unsent  int
	slots   chan struct{}
	reading sync.WaitGroup
}

func newTraffic(p *Plan, f fleet, tally []*keyTally) *traffic {
	t := &traffic{fleet: f, tally: tally, rate: p.Rate, slots: make(chan struct{}, maxUnderWay)}
	sum := 0.0
	for _, k := range p.Keys {
		sum += weight(k)
		t.upTo = append(t.upTo, sum)
	}
	return t
}

func weight(k Key) float64 {
	if k.Weight == 0 {
		return 1
	}
	return k.Weight
}

func (t *traffic) pick() int {
	at := rand.Float64() * t.upTo[len(t.upTo)-1] //nolint:gosec // draws keys, guards nothing
	i, found := slices.BinarySearch(t.upTo, at)
	if found {
		i++ // the border belongs to the next one
	}
	return min(i, len(t.upTo)-1)
}

// send reads until ctx ends; each read lives at most as long as reads does.
func (t *traffic) send(ctx, reads context.Context) {
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for due := int(now.Sub(began).Seconds() * t.rate); sent < due; sent++ {
				t.begin(reads, began.Add(time.Duration(float64(sent)/t.rate*float64(time.Second))))
			}
		}
	}
}

func (t *traffic) begin(ctx context.Context, due time.Time) {
	select {
	case t.slots <- struct{}{}:
	default:
		t.unsent++
		return
	}
	t.reading.Go(func() {
		defer func() { <-t.slots }()
		t.read(ctx, t.pick(), due)
	})
}

func (t *traffic) read(ctx context.Context, key int, due time.Time) {
	of := t.tally[key]
	of.readBegins()
	began := time.Now()
	a, err := t.fleet.read(ctx, key)
	if errors.Is(err, errDied) {
		of.died()
		return
	}
	of.readEnds(due, began, a, err, ctx.Err() != nil)
}
