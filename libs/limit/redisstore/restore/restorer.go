package restore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// Restorer restores quotas on the counters' Redis. It is safe for concurrent use.
type Restorer struct {
	client redis.UniversalClient
	prefix string
}

// New returns one; it does not connect.
func New(client redis.UniversalClient, keyPrefix string) *Restorer {
	return &Restorer{client: client, prefix: keyPrefix}
}

// Process is one Redis that takes charges: alone, or a master of a Cluster.
type Process struct {
	epoch.Process
	// Epoch is that of its quotas. Empty where it has none of its own.
	Epoch string
	// Whole: quotas are charged here.
	Whole bool
	// partly: the home slot is whole, and another one is not.
	partly bool
}

// String names it in logs.
func (p Process) String() string {
	if p.Addr == "" {
		return "redis"
	}
	return p.Addr
}

// SameSlots reports whether two looks found the same slots at the same processes.
func SameSlots(a, b []Process) bool {
	return slices.EqualFunc(a, b, func(a, b Process) bool { return a.Addr == b.Addr && slices.Equal(a.Slots, b.Slots) })
}

// ErrNoRunID means that Redis does not tell its run id, or is a replica: nobody
// can say then whether quotas are whole, so none are charged.
var ErrNoRunID = errors.New("redis does not tell its run id (its user needs +info), or is a replica")

// Look tells how each process stands by the epoch that speaks for all of its
// slots; with every, by all of them.
func (r *Restorer) Look(ctx context.Context, every bool) ([]Process, error) {
	all, err := epoch.Processes(ctx, r.client)
	if err != nil {
		return nil, err
	}
	found := make([]Process, 0, len(all))
	for _, p := range all {
		home, err := epoch.Do(ctx, r.client, r.prefix, p.Slots[:1], epoch.Look, "")
		if err != nil {
			return nil, err
		}
		one := Process{Process: p, Epoch: home[0].Epoch(), Whole: home[0].Whole()}
		if one.Whole && every {
			if one.Whole, err = r.allHave(ctx, p.Slots[1:], one.Epoch); err != nil {
				return nil, err
			}
			one.partly = !one.Whole
		}
		found = append(found, one)
	}
	return found, nil
}

// allHave reports whether the epochs of slots are this one.
func (r *Restorer) allHave(ctx context.Context, slots []int, want string) (bool, error) {
	_, cluster := r.client.(*redis.ClusterClient)
	pipe := r.client.Pipeline()
	cmds := make([]*redis.StringCmd, len(slots))
	for i, slot := range slots {
		cmds[i] = pipe.Get(ctx, epoch.Key(r.prefix, cluster, slot))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, cmd := range cmds {
		text, err := cmd.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return false, fmt.Errorf("read epochs: %w", err)
		}
		if text != want {
			return false, nil
		}
	}
	return true, nil
}

// Begin begins the restore of a process whose quotas are not whole, or joins the
// one that is under way there, and returns it with its epoch.
func (r *Restorer) Begin(ctx context.Context, p Process) (Process, error) {
	op := epoch.Begin
	if p.partly {
		op = epoch.Reopen // what is reported anew must not be taken for reported before
	}
	home, err := epoch.Do(ctx, r.client, r.prefix, p.Slots[:1], op, rand.Text())
	if err != nil {
		return p, err
	}
	if p.Epoch = home[0].Epoch(); p.Epoch == "" {
		return p, fmt.Errorf("begin a restore: %w", ErrNoRunID)
	}
	all, err := epoch.Do(ctx, r.client, r.prefix, p.Slots, epoch.Join, p.Epoch)
	if err != nil {
		return p, err
	}
	for _, st := range all {
		if st.Epoch() != p.Epoch {
			return p, errChanged
		}
	}
	return p, nil
}

var errChanged = errors.New("redis has changed since the restore was begun")

// Seal says that the process's quotas are whole. It fails where it is another
// process by now, or has lost its data again.
func (r *Restorer) Seal(ctx context.Context, p Process) error {
	// The epoch that speaks for all comes last.
	slots := append(slices.Clone(p.Slots[1:]), p.Home())
	all, err := epoch.Do(ctx, r.client, r.prefix, slots, epoch.Seal, p.Epoch)
	if err != nil {
		return err
	}
	for _, st := range all {
		if st.Epoch() != p.Epoch || !st.Whole() {
			return errChanged
		}
	}
	return nil
}

// Gateway is one that sent a heartbeat.
type Gateway = epoch.Gateway

// Gateways lists those that sent a process a heartbeat within a day, and Redis's
// clock.
func (r *Restorer) Gateways(ctx context.Context, p Process) ([]Gateway, time.Time, error) {
	return epoch.Gateways(ctx, r.client, r.prefix, &p.Process)
}

// Known is the highest that was seen of each number of a quota.
type Known struct {
	// Counter is its identity, without a deployment's prefix.
	Counter string
	redisstore.Totals
	// Rolls says that Carried counts, also where it is 0.
	Rolls bool
	// Expires is when the keys of its period may go; zero is never.
	Expires time.Time
}

// Raise brings quotas up to what is known of them and returns how many numbers
// were below it. It may be called at any time, whole or not, with quotas of any
// process.
func (r *Restorer) Raise(ctx context.Context, all []Known) (raised int, err error) {
	var floors []epoch.Floor
	for i := range all {
		floors = all[i].floors(floors, r.prefix)
	}
	return epoch.Raise(ctx, r.client, floors)
}

func (k *Known) floors(floors []epoch.Floor, prefix string) []epoch.Floor {
	expiry := int64(0)
	if !k.Expires.IsZero() {
		expiry = k.Expires.Unix()
	}
	add := func(key string, n int64, always bool) {
		if n > 0 || always {
			floors = append(floors, epoch.Floor{Key: key, Number: n, Expiry: expiry})
		}
	}
	consumed, refunded, forfeited, carried := redisstore.Keys(prefix, k.Counter)
	add(consumed, k.Consumed, false)
	add(refunded, k.Refunded, false)
	add(forfeited, k.Forfeited, false)
	// What is carried stands from the first charge on, also where it is nothing.
	add(carried, k.Carried, k.Rolls && k.Consumed > 0)
	return floors
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
	floors := make([]epoch.Floor, len(all))
	for i, n := range all {
		floors[i] = epoch.Floor{Key: keyPrefix + n.Key, Number: n.N}
		if !n.Expires.IsZero() {
			floors[i].Expiry = n.Expires.Unix()
		}
	}
	_, err := epoch.Raise(ctx, client, floors)
	return err
}
