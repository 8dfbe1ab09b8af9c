package redisstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// Times of the sync loop.
const (
	heartbeatEvery = 500 * time.Millisecond
	// syncAgain is the least time between two rounds that decisions ask for;
	// syncRestoring is that between two while a restore is under way.
	syncAgain     = 50 * time.Millisecond
	syncRestoring = 100 * time.Millisecond
)

// Run sends each Redis a heartbeat, and reports what it knows of quotas where they
// are being restored, until ctx is cancelled; then it deregisters, and returns nil.
// Without it the store decides, and a restore does not hear of what it knows.
//
// This process charges nothing under an epoch before it has reported to it what it
// knows: from when another epoch is seen on, calls name none that there is; those
// under way that named the old one are waited for; then all totals go in; only
// after that do calls name the new one, and is it reported to.
func (s *Store) Run(ctx context.Context) error {
	reported := map[string]string{} // by address: the epoch reported to
	for {
		round := time.NewTimer(s.sync(ctx, reported))
		select {
		case <-ctx.Done():
			round.Stop()
			s.deregister()
			return nil
		case <-round.C:
		case <-s.attention:
			round.Stop()
			pause := time.NewTimer(syncAgain)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}
}

// sync goes round the processes once, and returns when to do so again. What fails
// is tried in the next round.
func (s *Store) sync(ctx context.Context, reported map[string]string) (again time.Duration) {
	listing, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	all, err := epoch.Processes(listing, s.client)
	cancel()
	if err != nil {
		return heartbeatEvery
	}
	again = heartbeatEvery
	whole := true
	for i := range all {
		st := s.syncOne(ctx, &all[i], reported)
		whole = st.Whole() && whole
		if !st.Whole() && st.Epoch() != "" {
			again = syncRestoring
		}
	}
	s.whole.Store(whole)
	return again
}

// syncOne returns how the process stands, nothing where that is not known.
func (s *Store) syncOne(ctx context.Context, p *epoch.Process, reported map[string]string) epoch.Standing {
	st, err := s.heartbeat(ctx, p, reported[p.Addr])
	if err != nil {
		return epoch.Standing{}
	}
	s.servers.seen(ctx, p, st.RunID())
	switch now := st.Epoch(); now {
	case "":
		return st
	case reported[p.Addr]:
		s.servers.expect(p.Slots, now) // slots may have come to it
		return st
	default:
		return s.report(ctx, p, reported, now)
	}
}

// report reports all that this process knows to an epoch that no call has named.
func (s *Store) report(ctx context.Context, p *epoch.Process, reported map[string]string, now string) epoch.Standing {
	s.servers.expect(p.Slots, noEpoch)
	if !s.servers.drained(ctx, s.o.CallTimeout) {
		return epoch.Standing{}
	}
	clock, _ := s.clock.redis(s.now())
	for floors := range slices.Chunk(s.memory.floors(clock.Unix(), s.servers.ofProcess(p)), reportAtOnce) {
		if _, err := s.heartbeat(ctx, p, reported[p.Addr]); err != nil { // still at it
			return epoch.Standing{}
		}
		if !s.raise(ctx, floors) {
			return epoch.Standing{}
		}
	}
	if s.o.Report != nil && s.o.Report(ctx) != nil {
		return epoch.Standing{}
	}
	reported[p.Addr] = now
	s.servers.expect(p.Slots, now)
	st, _ := s.heartbeat(ctx, p, now) // nothing where it fails
	return st
}

// reportAtOnce is how many floors are raised before the gateway says again that
// it is there.
const reportAtOnce = 4096

func (s *Store) raise(ctx context.Context, floors []epoch.Floor) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*s.o.CallTimeout)
	defer cancel()
	_, err := epoch.Raise(ctx, s.client, floors)
	return err == nil
}

func (s *Store) heartbeat(ctx context.Context, p *epoch.Process, reported string) (epoch.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	defer cancel()
	return epoch.Heartbeat(ctx, s.client, s.o.KeyPrefix, p, s.o.Name, reported)
}

// deregister spares a restore the wait for a gateway that is gone.
func (s *Store) deregister() {
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	all, err := epoch.Processes(ctx, s.client)
	for i := 0; err == nil && i < len(all); i++ {
		err = epoch.Deregister(ctx, s.client, s.o.KeyPrefix, &all[i], s.o.Name)
	}
}

// Whole reports whether the quotas were whole when Run looked last.
func (s *Store) Whole() bool { return s.whole.Load() }

// notice has Run look at once: a decision was answered RESTORE.
func (s *Store) notice() {
	select {
	case s.attention <- struct{}{}:
	default:
	}
}

// expect has calls to the slots name an epoch from now on.
func (v *servers) expect(slots []int, named string) {
	for _, slot := range slots {
		if old := v.epochs[slot].Load(); old == nil || *old != named {
			v.epochs[slot].Store(&named)
		}
	}
}

// ofProcess tells the keys of a process's slots.
func (v *servers) ofProcess(p *epoch.Process) func(key string) bool {
	if v.cluster == nil {
		return func(string) bool { return true }
	}
	mine := make(map[int]bool, len(p.Slots))
	for _, slot := range p.Slots {
		mine[slot] = true
	}
	return func(key string) bool { return mine[epoch.SlotOf(key)] }
}

// all are the lanes of every server.
func (v *servers) all() []*lanes {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*lanes
	if v.only != nil {
		all = append(all, v.only)
	}
	for _, l := range v.byAddr {
		all = append(all, l)
	}
	return all
}

// drained waits until the calls that are under way now have ended, so that what
// they were answered is known; false where some have not within longest.
func (v *servers) drained(ctx context.Context, longest time.Duration) bool {
	before := map[*lane]uint64{}
	for _, l := range v.all() {
		maps.Copy(before, l.underWay())
	}
	end := time.NewTimer(2 * longest)
	defer end.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		now := map[*lane]uint64{}
		for _, l := range v.all() {
			maps.Copy(now, l.underWay())
		}
		for n, sent := range before {
			if now[n] != sent {
				delete(before, n)
			}
		}
		if len(before) == 0 {
			return true
		}
		select {
		case <-look.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// underWay are the lanes at work, by how often each has sent.
func (l *lanes) underWay() map[*lane]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := make(map[*lane]uint64, len(l.began))
	for n := range l.began {
		busy[n] = n.sent
	}
	return busy
}

// Epoch names what Redis has not lost: it is another one after each restore of any
// process. Empty while it is not known of all of them.
func (s *Store) Epoch() string {
	if s.servers.cluster == nil {
		return epochOrNone(s.servers.epochs[0].Load())
	}
	seen := map[string]bool{}
	for slot := range s.servers.epochs {
		named := epochOrNone(s.servers.epochs[slot].Load())
		if named == "" {
			return ""
		}
		seen[named] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), " ")
}

func epochOrNone(named *string) string {
	if named == nil || *named == noEpoch {
		return ""
	}
	return *named
}
