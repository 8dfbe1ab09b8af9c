package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Restorer is the keeper's side of markers: it sees where quotas are not known
// to be whole, and says that they are once everything that is known of them has
// been handed in. It is safe for concurrent use, and several of them do no
// harm: each step is repeatable, and a marker is sealed for the restore it was
// begun for only.
type Restorer struct {
	client  redis.UniversalClient
	prefix  string
	cluster bool
}

// NewRestorer returns one on the counters' Redis; it does not connect.
func NewRestorer(client redis.UniversalClient, keyPrefix string) *Restorer {
	_, cluster := client.(*redis.ClusterClient)
	return &Restorer{client: client, prefix: keyPrefix, cluster: cluster}
}

// Process is one Redis that takes charges, alone or a master of a Cluster.
type Process struct {
	process

	// Marker is the incarnation of its quotas: RUN_ID:TOKEN. Empty where neither
	// it nor anybody before said anything.
	Marker string
	// Whole: quotas are charged here.
	Whole bool
	// Moved: it is not whole for slots only that came from processes that are. A
	// Watch says so.
	Moved bool
	// partly: the home slot is whole, and another one is not.
	partly bool
	// copied: it says that it is whole, and has been a copy of another process
	// since. A Watch says so.
	copied  bool
	lineage lineage
}

// String names it in logs.
func (p Process) String() string {
	if p.addr == "" {
		return "redis"
	}
	return p.addr
}

// ErrNoRunID means that Redis does not tell its run id (INFO server is refused):
// nobody can say then whether quotas are whole, so none are charged.
var ErrNoRunID = errors.New("redis does not tell its run id: its user needs +info")

// Look tells how each process stands by the marker that speaks for all of its
// slots; with every, by all of them.
func (r *Restorer) Look(ctx context.Context, every bool) ([]Process, error) {
	all, err := processes(ctx, r.client)
	if err != nil {
		return nil, err
	}
	found := make([]Process, 0, len(all))
	for _, p := range all {
		home, of, err := r.home(ctx, &p, "look", "", "")
		if err != nil {
			return nil, err
		}
		one := Process{process: p, Marker: home.incarnation(), Whole: home.whole(), lineage: of}
		if one.Whole && every {
			if one.Whole, err = r.allHave(ctx, p.slots[1:], one.Marker); err != nil {
				return nil, err
			}
			one.partly = !one.Whole
		}
		found = append(found, one)
	}
	return found, nil
}

// allHave reports whether the markers of slots are this one.
func (r *Restorer) allHave(ctx context.Context, slots []int, marker string) (bool, error) {
	if len(slots) == 0 {
		return true, nil
	}
	markers, err := r.markers(ctx, slots)
	if err != nil {
		return false, err
	}
	for _, text := range markers {
		if text != marker {
			return false, nil
		}
	}
	return true, nil
}

// Begin begins the restore of a process whose quotas are not whole, or joins
// the one that is under way there, and returns it with its marker.
func (r *Restorer) Begin(ctx context.Context, p Process) (Process, error) {
	op := "begin"
	if p.partly || p.copied {
		op = "reopen" // what is handed in anew must not be taken for handed in before
	}
	home, of, err := r.home(ctx, &p.process, op, rand.Text(), "")
	if err != nil {
		return p, err
	}
	p.lineage = of
	if p.Marker = home.incarnation(); p.Marker == "" {
		return p, fmt.Errorf("begin a restore: %w", ErrNoRunID)
	}
	standings, err := r.each(ctx, p.slots, "join", p.Marker)
	if err != nil {
		return p, err
	}
	for _, st := range standings {
		if st.incarnation() != p.Marker {
			return p, errMoved
		}
	}
	return p, nil
}

var errMoved = errors.New("redis has changed since the restore was begun")

// Seal says that the process's quotas are whole. It fails where it is another
// process by now, or has lost its data again.
func (r *Restorer) Seal(ctx context.Context, p Process) error {
	// The marker that speaks for all comes last.
	slots := append(slices.Clone(p.slots[1:]), p.home())
	standings, err := r.each(ctx, slots, "seal", p.Marker)
	if err != nil {
		return err
	}
	for _, st := range standings {
		if st.marker != p.Marker || !st.whole() {
			return errMoved
		}
	}
	return nil
}

// each runs the marker's script for each slot of a process, in one go, in order.
func (r *Restorer) each(ctx context.Context, slots []int, op, given string) ([]standing, error) {
	cmds := make([]*redis.Cmd, len(slots))
	if len(slots) == 1 {
		cmds[0] = markerScript.Run(ctx, r.client, []string{besides(r.prefix, r.cluster, slots[0], markerKey)}, op, given)
	} else {
		pipe := r.client.Pipeline()
		for i, slot := range slots {
			cmds[i] = markerScript.Eval(ctx, pipe, []string{besides(r.prefix, r.cluster, slot, markerKey)}, op, given)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	standings := make([]standing, len(cmds))
	for i, cmd := range cmds {
		st, err := standingOf(cmd)
		if err != nil {
			return nil, fmt.Errorf("%s marker of slot %d: %w", op, slots[i], err)
		}
		standings[i] = st
	}
	return standings, nil
}

// Gateway is one that said that it is there.
type Gateway struct {
	Name string
	// Seen is when, by Redis's clock, in whole seconds.
	Seen time.Time
	// Marker is the incarnation that it has handed in its totals to.
	Marker string
}

// Gateways lists those that said to a process that they are there, however
// long ago, and Redis's clock. Those unseen for a day are removed.
func (r *Restorer) Gateways(ctx context.Context, p Process) ([]Gateway, time.Time, error) {
	key := besides(r.prefix, r.cluster, p.home(), gatewaysKey)
	now, err := r.client.Time(ctx).Result()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask redis for the time: %w", err)
	}
	fields, err := r.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list gateways: %w", err)
	}
	var all []Gateway
	for name, text := range fields {
		seconds, marker, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || now.Unix()-n > int64(24*time.Hour/time.Second) {
			_ = r.client.HDel(ctx, key, name).Err() // the next look does it
			continue
		}
		all = append(all, Gateway{Name: name, Seen: time.Unix(n, 0).UTC(), Marker: marker})
	}
	return all, now.UTC(), nil
}

// Known is the highest that was seen of each number of a quota.
type Known struct {
	// Counter is its identity, without a deployment's prefix.
	Counter string
	Totals
	// Rolls says that Carried counts, also where it is 0.
	Rolls bool
	// Expires is when the keys of its period may go; zero is never.
	Expires time.Time
}

// Raise brings quotas up to what is known of them and returns how many numbers
// were below it. It may be called at any time, whole or not, with quotas of
// any process.
func (r *Restorer) Raise(ctx context.Context, all []Known) (raised int, err error) {
	var floors []floor
	for _, t := range all {
		known := seen{consumed: t.Consumed, refunded: t.Refunded}
		switch {
		case t.Forfeited > 0:
			known.third, known.suffix = t.Forfeited, suffixForfeited
		case t.Rolls:
			known.third, known.suffix = t.Carried, suffixCarried
		}
		if !t.Expires.IsZero() {
			known.expiry = t.Expires.Unix()
		}
		floors = known.floors(floors, r.prefix+t.Counter+suffixConsumed)
	}
	return raise(ctx, r.client, floors)
}

// Number is the least that a number beside the counters is known to be.
type Number struct {
	// Key is without a deployment's prefix.
	Key string
	N   int64
	// Expires is when the key may go; zero is never.
	Expires time.Time
}

// RaiseNumbers brings numbers up to what is known of them, as Raise does quotas.
func RaiseNumbers(ctx context.Context, client redis.UniversalClient, keyPrefix string, all []Number) error {
	floors := make([]floor, len(all))
	for i, n := range all {
		floors[i] = floor{key: keyPrefix + n.Key, number: n.N}
		if !n.Expires.IsZero() {
			floors[i].expiry = n.Expires.Unix()
		}
	}
	_, err := raise(ctx, client, floors)
	return err
}

// DeclareWhole says that nothing is to be restored: of a Redis that is new and
// that no keeper watches, as in tests.
func DeclareWhole(ctx context.Context, client redis.UniversalClient, keyPrefix string) error {
	r := NewRestorer(client, keyPrefix)
	all, err := r.Look(ctx, true)
	for i := 0; err == nil && i < len(all); i++ {
		p := all[i]
		if p.Whole {
			continue
		}
		if p, err = r.Begin(ctx, p); err == nil {
			err = r.Seal(ctx, p)
		}
	}
	return err
}
