package redisstore

import (
	"context"
	"maps"
	"slices"
	"time"
)

// attendEvery is how often a gateway says that it is there.
const attendEvery = 500 * time.Millisecond

// attendAgain is the least time between two rounds that decisions ask for;
// attendRestore is that between two in which others may ask of lost calls.
const (
	attendAgain   = 50 * time.Millisecond
	attendRestore = 100 * time.Millisecond
)

// Run says to each Redis that this gateway is there, and hands in what it knows
// of quotas where they are being restored, until ctx is cancelled; then it says
// that it leaves, and returns nil. Without it the store decides, and a restore
// does not hear of what it knows.
//
// This process charges nothing in an incarnation of the quotas (a marker) before
// it has handed in to it what it knows: from when another one is seen on, calls
// name none that there is; those under way that named the old one are waited
// for; then all totals go in; only after that do calls name the new one, and is
// it reported as handed in to.
//
// It keeps one more connection to each Redis, the witness that makes charges of
// quotas cheaper there.
func (s *Store) Run(ctx context.Context) error {
	a := newAttendance()
	defer a.end()
	for {
		round := time.NewTimer(s.attend(ctx, a))
		select {
		case <-ctx.Done():
			round.Stop()
			s.goodbye()
			return nil
		case <-round.C:
		case <-s.attention:
			round.Stop()
			pause := time.NewTimer(attendAgain)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}
}

// attendance is what one that attends keeps of the processes.
type attendance struct {
	// By address: the marker handed in to, and who shows the process to scripts.
	handed    map[string]string
	witnesses map[string]*witness
	// Who was seen there, and what was said of lost calls in the last restore.
	peers    map[string]*peers
	accounts map[string]*account
}

func newAttendance() *attendance {
	return &attendance{handed: map[string]string{}, witnesses: map[string]*witness{}, peers: map[string]*peers{}, accounts: map[string]*account{}}
}

func (a *attendance) end() {
	for _, w := range a.witnesses {
		w.close()
	}
}

// without forgets the processes that are not among all.
func (a *attendance) without(all []process) {
	for addr, w := range a.witnesses {
		if !slices.ContainsFunc(all, func(p process) bool { return p.addr == addr }) {
			w.close()
			delete(a.witnesses, addr)
		}
	}
	for addr := range a.peers {
		if !slices.ContainsFunc(all, func(p process) bool { return p.addr == addr }) {
			delete(a.peers, addr)
			delete(a.accounts, addr)
		}
	}
}

// attend goes round the processes once, and returns when to do so again. What
// fails is tried at the next round.
func (s *Store) attend(ctx context.Context, a *attendance) (again time.Duration) {
	listing, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	all, err := processes(listing, s.client)
	cancel()
	if err != nil {
		return attendEvery
	}
	again = attendEvery
	whole, runIDs := true, make([]string, len(all))
	for i := range all {
		st := s.attendOne(ctx, &all[i], a)
		whole, runIDs[i] = st.whole() && whole, st.runID
		if !st.whole() && st.incarnation() != "" {
			again = attendRestore
		}
	}
	s.whole.Store(whole)
	a.without(all)
	for i, runID := range runIDs { // last: nobody waits for it
		if runID != "" {
			s.attest(ctx, a, &all[i], runID)
		}
	}
	return again
}

// attendOne returns how the process stands, nothing where that is not known.
func (s *Store) attendOne(ctx context.Context, p *process, a *attendance) standing {
	found, err := s.present(ctx, p, a.handed[p.addr])
	if err != nil {
		return standing{}
	}
	if a.peers[p.addr] == nil {
		a.peers[p.addr] = &peers{}
	}
	a.peers[p.addr].see(found.seen, found.now)
	switch now := found.incarnation(); now {
	case "":
		return found.standing
	case a.handed[p.addr]:
		s.servers.expect(p.slots, now) // slots may have come to it
		s.attended(ctx, p, a, found.standing)
		return found.standing
	default:
		return s.handInTo(ctx, p, a, now)
	}
}

// attended sees to lost calls at a process that has what this one knows.
func (s *Store) attended(ctx context.Context, p *process, a *attendance, st standing) {
	now := st.incarnation()
	if st.whole() {
		s.losses.over(p.slots, now)
		return
	}
	if told := a.accounts[p.addr]; told != nil {
		_ = s.answerLost(ctx, p, now, told) // the next round tries again
	}
}

// handInTo hands in all that this process knows to a process of Redis under a
// marker that it has not named before.
func (s *Store) handInTo(ctx context.Context, p *process, a *attendance, now string) standing {
	s.servers.expect(p.slots, noMarker)
	if !s.servers.drained(ctx, s.o.CallTimeout) {
		return standing{}
	}
	clock, _ := s.clock.redis(s.now())
	for floors := range slices.Chunk(s.memory.floors(clock.Unix(), s.servers.ofProcess(p)), handInAtOnce) {
		if _, err := s.present(ctx, p, a.handed[p.addr]); err != nil { // still at it
			return standing{}
		}
		if !s.handIn(ctx, floors) {
			return standing{}
		}
	}
	if s.o.HandIn != nil && s.o.HandIn(ctx) != nil {
		return standing{}
	}
	told, err := s.openAccount(ctx, p, now, a.peers[p.addr])
	if err != nil {
		return standing{}
	}
	a.accounts[p.addr], a.handed[p.addr] = &told, now
	s.servers.expect(p.slots, now)
	st, _ := s.present(ctx, p, now) // nothing where it fails
	return st.standing
}

// noMarker is what calls name that are to be charged nowhere.
const noMarker = "-"

// handInAtOnce is how many floors are handed in before the gateway says again
// that it is there.
const handInAtOnce = 4096

func (s *Store) handIn(ctx context.Context, floors []floor) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*s.o.CallTimeout)
	defer cancel()
	_, err := raise(ctx, s.client, floors)
	return err == nil
}

func (s *Store) present(ctx context.Context, p *process, handed string) (presence, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.CallTimeout)
	defer cancel()
	return presenceOf(attendScript.Run(ctx, s.client, s.attendKeys(p), s.o.Name, handed))
}

func (s *Store) attendKeys(p *process) []string {
	cluster := s.servers.cluster != nil
	return []string{besides(s.o.KeyPrefix, cluster, p.home(), markerKey), besides(s.o.KeyPrefix, cluster, p.home(), gatewaysKey)}
}

// goodbye spares a restore the wait for a gateway that is gone.
func (s *Store) goodbye() {
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	all, err := processes(ctx, s.client)
	for i := 0; err == nil && i < len(all); i++ {
		err = attendScript.Run(ctx, s.client, s.attendKeys(&all[i]), s.o.Name, "", "leave").Err()
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

// expect has calls to the slots name a marker from now on.
func (v *servers) expect(slots []int, marker string) {
	for _, slot := range slots {
		if old := v.markers[slot].Load(); old == nil || *old != marker {
			v.markers[slot].Store(&marker)
		}
	}
}

// marker is the one that calls to a slot name, empty where none is known.
func (v *servers) marker(slot int) string {
	if m := v.markers[slot].Load(); m != nil {
		return *m
	}
	return ""
}

// ofProcess tells the keys of a process's slots.
func (v *servers) ofProcess(p *process) func(key string) bool {
	if v.cluster == nil {
		return func(string) bool { return true }
	}
	mine := make(map[int]bool, len(p.slots))
	for _, slot := range p.slots {
		mine[slot] = true
	}
	return func(key string) bool { return mine[slotOf(key)] }
}

// all are the lanes of every server.
func (v *servers) all() []*lanes {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := []*lanes{v.only}
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
