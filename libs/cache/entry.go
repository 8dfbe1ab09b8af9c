package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// envelope is a value as Redis keeps it. Its head is text of fixed width, which the scripts read; the rest is Go's:
//
//	v fence(16) logical_ms(12) physical_ms(12) | flags delta_µs swr_ms sie_ms payload
//
// It holds durations, no instants: its age is its physical TTL less what Redis says is left, so the clocks of the
// processes need not agree.
type envelope struct {
	fence             int64 // the run that loaded it, µs of Redis's clock
	logical, physical time.Duration
	swr, sie          time.Duration
	delta             time.Duration // moving average of load times
	negative          bool          // the source has nothing under the key
	payload           []byte
}

const (
	headLen      = 1 + 16 + 12 + 12
	flagNegative = 1
	// maxTTL fits twelve digits of milliseconds and a time.Duration.
	maxTTL = 30 * 365 * 24 * time.Hour
)

var errEnvelope = errors.New("malformed cache record")

func (e *envelope) encode() []byte {
	b := make([]byte, 0, headLen+32+len(e.payload))
	b = fmt.Appendf(b, "v%016d%012d%012d", e.fence, e.logical.Milliseconds(), e.physical.Milliseconds())
	var flags byte
	if e.negative {
		flags |= flagNegative
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(e.delta.Microseconds()))
	b = binary.AppendUvarint(b, uint64(e.swr.Milliseconds()))
	b = binary.AppendUvarint(b, uint64(e.sie.Milliseconds()))
	return append(b, e.payload...)
}

func decodeEnvelope(b string) (envelope, error) {
	if len(b) <= headLen || b[0] != 'v' {
		return envelope{}, errEnvelope
	}
	fence, err1 := strconv.ParseInt(b[1:17], 10, 64)
	logical, err2 := strconv.ParseInt(b[17:29], 10, 64)
	physical, err3 := strconv.ParseInt(b[29:41], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return envelope{}, errEnvelope
	}
	e := envelope{
		fence: fence, logical: time.Duration(logical) * time.Millisecond, physical: time.Duration(physical) * time.Millisecond,
		negative: b[headLen]&flagNegative != 0,
	}
	rest := []byte(b[headLen+1:])
	for _, field := range []struct {
		to   *time.Duration
		unit time.Duration
	}{{&e.delta, time.Microsecond}, {&e.swr, time.Millisecond}, {&e.sie, time.Millisecond}} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(maxTTL/field.unit) {
			return envelope{}, errEnvelope
		}
		*field.to, rest = time.Duration(n)*field.unit, rest[size:]
	}
	e.payload = rest
	return e, nil
}

// item is a value in this process. It is immutable. Instants are nanoseconds of the Cache's own clock.
type item[V any] struct {
	value      V
	negative   bool
	fence      int64
	gen        uint64 // the L1 generation it belongs to; others are void
	written    int64
	expiry     int64 // of its freshness: the TTL's end or the invalidation
	swr, sie   int64 // how long past expiry it may be served
	delta      time.Duration
	window     int64 // before expiry, in which XFetch may draw
	recheck    int64 // from then on Redis is asked first
	localUntil int64 // from then on it is void even when Redis cannot be asked
	failing    int64 // until then it stands in for err without another attempt
	err        error
	stats      *keyState
}

func (it *item[V]) fresh(now int64) bool { return now < it.expiry }

// revalidating reports whether it may be served while it is refreshed.
func (it *item[V]) revalidating(now int64) bool { return now < it.expiry+it.swr }

// withinStaleLimits reports whether it may be served in place of a failure.
func (it *item[V]) withinStaleLimits(now int64) bool { return now < it.expiry+max(it.swr, it.sie) }

// nearLimit reports whether a stale one is in the last tenth of the time in which it may be served.
func (it *item[V]) nearLimit(now int64) bool {
	limit := it.swr
	if it.err != nil {
		limit = max(it.swr, it.sie)
	}
	return now-it.expiry >= limit-limit/10
}

func (it *item[V]) result(src Source, now int64) Result[V] {
	return Result[V]{Value: it.value, Source: src, Age: time.Duration(now - it.written), Fresh: time.Duration(it.expiry - now), Err: it.err}
}
