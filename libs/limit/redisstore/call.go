package redisstore

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// Letters of the script's algorithms.
const (
	letterGCRA  = "g"
	letterFixed = "f"
	letterQuota = "q"
	letterNever = "n"
)

// consumedSuffix ends the key of a quota's consumed total.
const consumedSuffix = ":c"

// call is the arguments of one EVALSHA, kept for reuse: go-redis takes pointers
// to integers and strings, so that nothing is boxed.
type call struct {
	args    []any
	keys    []string
	numbers []int64
	numKeys int
	// sent is each counter's place among the keys, -1 where none is needed.
	sent   []int
	bounds []period.Bounds // by counter; of quotas only
}

// needsRedis reports whether any counter has something to ask or to write.
func needsRedis(counters []limit.Counter) bool {
	for i := range counters {
		if !isFree(&counters[i]) {
			return true
		}
	}
	return false
}

// isFree reports an unlimited rate: it denies nothing, and what it would count
// nobody asks for. Unlimited quotas go on counting what is sold.
func isFree(c *limit.Counter) bool { return c.Unlimited && !c.Algorithm.Quota() }

// build lays out the arguments; args[0] and args[1] are the sender's.
func (c *call) build(s *Store, counters []limit.Counter, now time.Time) {
	c.clear()
	// Pointers into numbers and keys are taken, so neither may move later.
	const mostNumbers = 7
	if need := len(counters) * mostNumbers; cap(c.numbers) < need {
		c.numbers = make([]int64, 0, need)
	}
	if cap(c.keys) < len(counters) {
		c.keys = make([]string, 0, len(counters))
	}
	for i := range counters {
		n, b := &counters[i], period.Bounds{}
		if isFree(n) {
			c.sent, c.bounds = append(c.sent, -1), append(c.bounds, b)
			continue
		}
		key := s.prefix + n.Key
		if n.Algorithm.Quota() {
			b = s.periodAt(n.Calendar, now)
			key = s.prefix + n.Key + ":" + b.Name() + consumedSuffix
		}
		c.sent, c.bounds = append(c.sent, len(c.keys)), append(c.bounds, b)
		c.keys = append(c.keys, key)
	}
	c.numKeys = len(c.keys)
	c.args = append(c.args, nil, nil, &c.numKeys)
	for i := range c.keys {
		c.args = append(c.args, &c.keys[i])
	}
	for i := range counters {
		if c.sent[i] >= 0 {
			c.counter(&counters[i], &c.bounds[i])
		}
	}
}

// counter appends one counter's letter and numbers.
func (c *call) counter(n *limit.Counter, b *period.Bounds) {
	capacity := n.Capacity()
	if n.Unlimited {
		capacity = -1
	}
	switch {
	case n.Algorithm == limit.RenewingQuota:
		c.append(letterQuota, n.Cost, capacity, b.Start.UnixMicro(), b.End.UnixMicro())
	case n.Limit == 0:
		c.append(letterNever, n.Cost, 0)
	case n.Algorithm == limit.FixedWindow:
		c.append(letterFixed, n.Cost, capacity, n.Window.Microseconds())
	default:
		burst, burstRem, _ := limit.Emission(n.Limit, n.Window, n.Burst)
		// A cost above burst is denied by capacity; its time may be too long to
		// be exact, and does not matter.
		cost, costRem, _ := limit.Emission(n.Limit, n.Window, min(n.Cost, n.Burst))
		c.append(letterGCRA, n.Cost, capacity, n.Limit, burst, burstRem, cost, costRem)
	}
}

func (c *call) append(letter string, numbers ...int64) {
	c.args = append(c.args, letter)
	for _, n := range numbers {
		c.numbers = append(c.numbers, n)
		c.args = append(c.args, &c.numbers[len(c.numbers)-1])
	}
}

// clear lets go of what the last request left.
func (c *call) clear() {
	clear(c.args)
	clear(c.keys)
	clear(c.bounds)
	c.args, c.keys, c.numbers = c.args[:0], c.keys[:0], c.numbers[:0]
	c.sent, c.bounds = c.sent[:0], c.bounds[:0]
}
