package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// lineage is whose data a process goes on with. A promotion gives it another
// one, and the data of the master it followed until then.
type lineage struct {
	id string // its replication id; empty where it takes no charges, or does not tell
	// noted is the id with which it is whole by its marker; empty where nothing is
	// noted: a keeper from before lineages sealed it, or its home slot moved.
	noted string
	// first: no promotion led to the id.
	first bool
}

// sighting is what a watch saw of a process that was whole.
type sighting struct {
	marker, id string
	at         time.Time // before it was asked
}

// backlogLives is the least repl-backlog-ttl that is reckoned with (Redis's
// default is an hour). After a promotion, Redis keeps the id from before it at
// least as long.
const backlogLives = time.Minute

// home runs an operation of the marker's script in the slot that speaks for all
// of a process's, and tells its lineage at that instant; id is noted where it is
// not empty.
func (r *Restorer) home(ctx context.Context, p *process, op, given, id string) (standing, lineage, error) {
	keys := []string{
		besides(r.prefix, r.cluster, p.home(), markerKey),
		besides(r.prefix, r.cluster, p.home(), lineageKey),
	}
	answer, err := lineageScript.Run(ctx, r.client, keys, op, given, id).StringSlice()
	if err == nil && len(answer) != 5 {
		err = fmt.Errorf("%d answers", len(answer))
	}
	if err != nil {
		return standing{}, lineage{}, fmt.Errorf("%s marker of slot %d: %w", op, p.home(), err)
	}
	return standing{answer[0], answer[1]}, lineage{answer[2], answer[3], answer[4] != ""}, nil
}

// judge finds the processes that have been a copy of another since they were
// whole by their markers, of those that a look begun at an instant found whole.
func (w *Watch) judge(ctx context.Context, all []Process, began time.Time) error {
	maps.DeleteFunc(w.lineages, func(addr string, _ sighting) bool {
		return !slices.ContainsFunc(all, func(p Process) bool { return p.addr == addr })
	})
	for i := range all {
		p := &all[i]
		if !p.Whole && !p.partly || p.lineage.id == "" {
			continue
		}
		if !w.same(p) {
			p.Whole, p.partly, p.copied = false, false, true
			continue
		}
		if p.lineage.noted != p.lineage.id {
			if _, _, err := w.r.home(ctx, &p.process, "look", "", p.lineage.id); err != nil {
				return err
			}
		}
		w.saw(p, began)
	}
	return nil
}

// same reports whether a process goes on with the data it was whole with. What
// this watch saw itself comes before what is noted; where it has not seen the
// marker before and nothing is noted, there is nothing to compare with.
func (w *Watch) same(p *Process) bool {
	l, last := p.lineage, w.lineages[p.addr]
	switch {
	case l.id == l.noted:
		return true
	case last.marker != p.Marker:
		return l.noted == ""
	case l.id == last.id:
		return true
	}
	return l.first && w.now().Sub(last.at) < backlogLives
}

func (w *Watch) saw(p *Process, at time.Time) {
	w.lineages[p.addr] = sighting{marker: p.Marker, id: p.lineage.id, at: at}
}

// Begin is the Restorer's, and notes with which data the restore is begun.
func (w *Watch) Begin(ctx context.Context, p Process) (Process, error) {
	began := w.now()
	p, err := w.r.Begin(ctx, p)
	if err == nil && p.lineage.id == p.lineage.noted {
		w.saw(&p, began)
	}
	return p, err
}
