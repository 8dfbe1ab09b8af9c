package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// layout is what lay where in a Cluster, and by which markers, when all of it
// was whole and no slot was on its way. As long as each of its processes has
// the same marker, none has lost anything since: a slot that moved between them
// moved with all that was in it.
type layout struct {
	markers map[string]string // by address
	slots   map[string][]int
}

// settled returns the layout of processes that a look at every marker has just
// found whole; nil where a slot is on its way, a master does not say which it
// has, or they do not agree with that look about who has which. What was lost of
// a slot that was on its way before the look cannot hide in it: either that slot
// is on its way still, or the look found its marker at the process it is whole by.
func (r *Restorer) settled(ctx context.Context, all []Process) *layout {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return nil
	}
	l := &layout{markers: map[string]string{}, slots: map[string][]int{}}
	for i := range all {
		p := &all[i]
		node, err := cluster.MasterForKey(ctx, besides(r.prefix, true, p.home(), markerKey))
		if err != nil {
			return nil
		}
		text, err := node.ClusterNodes(ctx).Result()
		if err != nil {
			return nil
		}
		if claimed, settled := claims(text); !settled || !p.Whole || !slices.Equal(claimed, p.sorted()) {
			return nil
		}
		l.markers[p.addr], l.slots[p.addr] = p.Marker, p.slots
	}
	return l
}

// sorted are the process's slots in order.
func (p *process) sorted() []int { return slices.Sorted(slices.Values(p.slots)) }

// claims reads off CLUSTER NODES the slots that the node which was asked has,
// in order; settled is false where one is on its way to it or from it.
func claims(nodes string) (all []int, settled bool) {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, text := range fields[8:] {
			from, to, isRange := strings.Cut(text, "-")
			if !isRange {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, errTo := strconv.Atoi(to)
			if err != nil || errTo != nil {
				return nil, false // [93-<-NODE], [77->-NODE]
			}
			for slot := first; slot <= last; slot++ {
				all = append(all, slot)
			}
		}
		slices.Sort(all)
		return all, true
	}
	return nil, false
}

// took returns processes, of which a look at every marker found some not to be
// whole, with those made whole that only got slots from others of the layout,
// where no process has lost anything since. Of the rest, those are Moved whose
// slots came from processes that are whole. l may be nil.
func (r *Restorer) took(ctx context.Context, l *layout, all []Process) ([]Process, error) {
	if !r.cluster || !slices.ContainsFunc(all, func(p Process) bool { return !p.Whole }) {
		return all, nil
	}
	same, err := r.undisturbed(ctx, l, all)
	if err != nil {
		return nil, err
	}
	known := maps.Clone(same) // by address: the markers of what is whole now
	for _, p := range all {
		if p.Whole || p.partly {
			known[p.addr] = p.Marker
		}
	}
	adopted := slices.Clone(all)
	for i := range adopted {
		p := &adopted[i]
		if p.Whole || p.copied {
			continue
		}
		came, err := r.foreign(ctx, p, known[p.addr])
		if err != nil {
			return nil, err
		}
		p.Moved = true
		for marker := range came {
			p.Moved = p.Moved && slices.Contains(slices.Collect(maps.Values(known)), marker)
		}
		if same[p.addr] == "" || !p.Moved {
			continue
		}
		if err := r.adopt(ctx, p, came, same[p.addr]); err != nil {
			return nil, err
		}
	}
	return adopted, nil
}

// undisturbed are the markers of the layout, where each process still has its
// own in a slot that it had then; none where one of them has not, or others are
// there.
func (r *Restorer) undisturbed(ctx context.Context, l *layout, all []Process) (map[string]string, error) {
	none := map[string]string{}
	if l == nil || len(all) != len(l.markers) {
		return none, nil
	}
	for i := range all {
		p := &all[i]
		if p.copied {
			return none, nil
		}
		stayed := slices.IndexFunc(p.slots, func(slot int) bool { return slices.Contains(l.slots[p.addr], slot) })
		if stayed < 0 {
			return none, nil
		}
		st, err := r.each(ctx, p.slots[stayed:stayed+1], "look", "")
		if err != nil {
			return nil, err
		}
		if !st[0].whole() || st[0].marker != l.markers[p.addr] {
			return none, nil
		}
	}
	return maps.Clone(l.markers), nil
}

// foreign are the process's slots whose marker is not this one, by marker.
func (r *Restorer) foreign(ctx context.Context, p *Process, own string) (map[string][]int, error) {
	markers, err := r.markers(ctx, p.slots)
	if err != nil {
		return nil, err
	}
	came := map[string][]int{}
	for i, marker := range markers {
		if marker != own || own == "" {
			came[marker] = append(came[marker], p.slots[i])
		}
	}
	return came, nil
}

// adopt marks slots that came to a process as its own. Where it has lost its
// data or is another one by now, they do not have the marker they came with, or
// it does not run with that run id: it fails.
func (r *Restorer) adopt(ctx context.Context, p *Process, came map[string][]int, own string) error {
	var home string // speaks for all, so it comes last
	for marker, moved := range came {
		if slices.Contains(moved, p.home()) {
			home = marker
		}
	}
	order := slices.DeleteFunc(slices.Collect(maps.Keys(came)), func(m string) bool { return m == home })
	if home != "" {
		order = append(order, home)
	}
	for _, marker := range order {
		standings, err := r.each(ctx, came[marker], "adopt", marker+" "+own)
		if err != nil {
			return err
		}
		for _, st := range standings {
			if st.marker != own || !st.whole() {
				return errMoved
			}
		}
	}
	p.Marker, p.Whole, p.partly, p.Moved = own, true, false, false
	return nil
}

// markers reads those of slots; empty for none.
func (r *Restorer) markers(ctx context.Context, slots []int) ([]string, error) {
	pipe := r.client.Pipeline()
	cmds := make([]*redis.StringCmd, len(slots))
	for i, slot := range slots {
		cmds[i] = pipe.Get(ctx, besides(r.prefix, r.cluster, slot, markerKey))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	all := make([]string, len(slots))
	for i, cmd := range cmds {
		text, err := cmd.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read markers: %w", err)
		}
		all[i] = text
	}
	return all, nil
}
