package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	script "github.com/sluice-platform/sluice/schemas/redis"
)

var takeOutScript = redis.NewScript(script.TakeOut)

// suffixTaken is of the note that a quota's unknown calls were seen to.
const suffixTaken = ":taken"

// ErrRestored means that another keeper has ended the restore, or that Redis was
// lost again.
var ErrRestored = errors.New("the restore is over")

// placeAtOnce is how many quotas are read in one go.
const placeAtOnce = 500

// Placing is how lost calls are taken out of quotas.
type Placing struct {
	// Expires is when the keys of a counter's period may go; zero is never.
	Expires func(counter string) time.Time
	// Keep has the next restore know what a quota is about to become.
	Keep func(ctx context.Context, k Known) error
}

// Place finds what lost calls charged of a process's quotas, and takes it out of
// them: what was consumed is refunded, what was given back is consumed, so that
// totals only grow. All that is known must have been raised before. It may be done
// by several keepers at once, and after one that died: what is taken out is
// nobody's loss any more. Nothing is where the marker is sealed by then, since
// quotas are charged again: that is ErrRestored. On every error the quotas that
// were not come to are among all, not known.
func (r *Restorer) Place(ctx context.Context, p Process, l LostCalls, o Placing) (all []Placed, err error) {
	byText := func(a, b question) int { return strings.Compare(a.String(), b.String()) }
	asked := slices.SortedFunc(maps.Keys(l.since), byText)
	for some := range slices.Chunk(asked, placeAtOnce) {
		if all, err = r.placeSome(ctx, p, l, some, all, o); err != nil {
			break
		}
	}
	for _, q := range asked[len(all):] {
		all = append(all, Placed{Counter: q.counter, Lost: l.lost[q.counter]})
	}
	return all, err
}

// placeSome adds those that it has come to.
func (r *Restorer) placeSome(ctx context.Context, p Process, l LostCalls, some []question, all []Placed, o Placing) ([]Placed, error) {
	stands, err := r.standsOf(ctx, p, some)
	if err != nil {
		return all, fmt.Errorf("place lost calls: %w", err)
	}
	for i, q := range some {
		one, err := r.placeOne(ctx, p, l, q, stands[i], o)
		if err != nil {
			return all, fmt.Errorf("place lost calls of %s: %w", q.counter, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// stand is how a quota is: whole totals, whether what could not be told of was
// seen to in this restore, and whether a key holds something else.
type stand struct {
	Units
	taken, broken bool
}

// placeOne looks again where another keeper was faster.
func (r *Restorer) placeOne(ctx context.Context, p Process, l LostCalls, q question, now stand, o Placing) (Placed, error) {
	for {
		if now.broken {
			return Placed{Counter: q.counter, Lost: l.lost[q.counter]}, nil
		}
		one := l.place(q, now.Units)
		if one.Found == 0 || !one.Known && now.taken {
			return one, nil
		}
		done, err := r.takeOut(ctx, p, one, now.Units, o)
		if err != nil || done {
			return one, err
		}
		stands, err := r.standsOf(ctx, p, []question{q})
		if err != nil {
			return one, err
		}
		now = stands[0]
	}
}

// standsOf reads quotas, each together with the marker beside it: while that is
// not sealed nobody charges them.
func (r *Restorer) standsOf(ctx context.Context, p Process, some []question) ([]stand, error) {
	cmds := make([]*redis.SliceCmd, len(some))
	_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, q := range some {
			consumed, refunded, _, _ := Keys(r.prefix, q.counter)
			cmds[i] = pipe.MGet(ctx, MarkerKey(r.client, r.prefix, q.counter), consumed, refunded, r.prefix+q.counter+suffixTaken)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]stand, len(some))
	for i, cmd := range cmds {
		held := cmd.Val()
		if marker, _ := held[0].(string); marker != unsealed+p.Marker {
			return nil, ErrRestored
		}
		all[i] = stand{Units{numberIn(held[1]), numberIn(held[2])}, held[3] == unsealed+p.Marker, !isNumber(held[1]) || !isNumber(held[2])}
	}
	return all, nil
}

// isNumber reports whether a key has none, or one as the script writes it.
func isNumber(value any) bool {
	return value == nil || value == strconv.FormatInt(numberIn(value), 10)
}

// takeOut is false where the quota is another by now.
func (r *Restorer) takeOut(ctx context.Context, p Process, one Placed, now Units, o Placing) (bool, error) {
	then := now.Plus(Units{Consumed: max(0, -one.Found), Refunded: max(0, one.Found)})
	k := Known{Counter: one.Counter, Expires: o.Expires(one.Counter), Totals: Totals{Consumed: then.Consumed, Refunded: then.Refunded}}
	if err := o.Keep(ctx, k); err != nil {
		return false, err
	}
	consumed, refunded, _, _ := Keys(r.prefix, one.Counter)
	expiry, once := "0", "1"
	if !k.Expires.IsZero() {
		expiry = strconv.FormatInt(k.Expires.Unix(), 10)
	}
	if one.Known {
		once = "0"
	}
	keys := []string{MarkerKey(r.client, r.prefix, one.Counter), consumed, refunded, r.prefix + one.Counter + suffixTaken}
	done, err := takeOutScript.Run(ctx, r.client, keys, unsealed+p.Marker, now.Consumed, now.Refunded, then.Consumed, then.Refunded, expiry, once).Int()
	if err == nil && done < 0 {
		err = ErrRestored
	}
	return done > 0, err
}
