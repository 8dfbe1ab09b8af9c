package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Position is how far a group had handled its partitions at some moment.
type Position struct{ last map[int32]*kgo.Record }

// Handled is the present position: take it, make durable what was handled up
// to it, then CommitTo it. Safe to call from any goroutine, also in Handle.
func (g *Group) Handled() Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Position{last: maps.Clone(g.handled)}
}

// Commit commits everything handled so far. With nothing new it does nothing.
func (g *Group) Commit(ctx context.Context) error { return g.CommitTo(ctx, g.Handled()) }

// CommitTo commits what was handled up to p, without the partitions that have
// been given up since.
func (g *Group) CommitTo(ctx context.Context, p Position) error {
	g.mu.Lock()
	client := g.client
	for partition := range p.last {
		if _, held := g.handled[partition]; !held {
			delete(p.last, partition)
		}
	}
	g.mu.Unlock()
	if len(p.last) == 0 {
		return nil
	}
	if client == nil {
		return fmt.Errorf("group %s: commit: not running", g.o.Group)
	}
	if err := client.CommitRecords(ctx, slices.Collect(maps.Values(p.last))...); err != nil {
		return fmt.Errorf("group %s: commit: %w", g.o.Group, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for partition, r := range p.last {
		if g.handled[partition] == r {
			delete(g.handled, partition)
		}
	}
	return nil
}

// Ready is nil while this process is a member of the group and can read all
// its partitions.
func (g *Group) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.joined {
		return fmt.Errorf("kafka: not a member of group %s yet", g.cfg.Topic(g.o.Group))
	}
	for partition, err := range g.broken {
		return fmt.Errorf("group %s, partition %d: %w: %w", g.o.Group, partition, ErrLostPosition, err)
	}
	return nil
}
