package rehearsal

import (
	"context"
	"errors"
	"math/rand/v2"
)

// fleet is what the reads of a run go to. It is safe for concurrent use.
type fleet interface {
	// read returns errDied when the process that was asked is no more.
	read(ctx context.Context, key int) (answer, error)
	// clear says that the source has changed.
	clear(ctx context.Context, key int) error
	// cut takes the store away, mend brings it back; deafen lets no node hear what others say.
	cut()
	mend()
	deafen()
	close()
}

// answer is what a read brought.
type answer struct {
	version int64
	stale   bool
}

var errDied = errors.New("the node is dead")

// protected is a fleet of nodes, each read goes to one that lives.
type protected struct {
	run   *run
	nodes []*node
}

func (r *run) newProtected() (*protected, error) {
	p := &protected{run: r}
	for range r.plan.Nodes {
		n, err := r.newNode()
		if err != nil {
			p.close()
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	return p, nil
}

func (p *protected) read(ctx context.Context, key int) (answer, error) {
	if p.run.settings[key].Off {
		v, err := p.run.source.load(ctx, nil, key)
		return answer{version: v.version}, err
	}
	n := p.nodes[rand.IntN(len(p.nodes))] //nolint:gosec // spreads load, guards nothing
	for n.dead.Load() {                   // one dies at most
		n = p.nodes[rand.IntN(len(p.nodes))] //nolint:gosec // the same
	}
	a, err := n.read(ctx, key)
	if n.dead.Load() {
		return a, errDied
	}
	return a, err
}

func (p *protected) clear(ctx context.Context, key int) error {
	if p.run.settings[key].Off {
		return nil
	}
	return p.nodes[0].clear(ctx, key)
}

func (p *protected) cut() {
	for _, n := range p.nodes {
		n.line.cut()
	}
}

func (p *protected) mend() {
	for _, n := range p.nodes {
		if !n.dead.Load() {
			n.line.mend()
		}
	}
}

func (p *protected) deafen() {
	for _, n := range p.nodes {
		n.line.deafen()
	}
}

func (p *protected) close() {
	for _, n := range p.nodes {
		n.close()
	}
}
