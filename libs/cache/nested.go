package cache

import "context"

type nestKey struct{}

// nesting is the chain of keys that are being loaded above a context, so that a loader that asks for what it loads gets
// an error at once in place of a wait for itself.
type nesting struct {
	cache  any
	key    string
	depth  int
	parent *nesting
}

// maxDepth bounds chains of loads that never meet the same key.
const maxDepth = 32

func nest(ctx context.Context, cache any, key string) context.Context {
	parent, _ := ctx.Value(nestKey{}).(*nesting)
	n := &nesting{cache: cache, key: key, parent: parent}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	return context.WithValue(ctx, nestKey{}, n)
}

func isNested(ctx context.Context, cache any, key string) bool {
	n, _ := ctx.Value(nestKey{}).(*nesting)
	if n != nil && n.depth >= maxDepth {
		return true
	}
	for ; n != nil; n = n.parent {
		if n.cache == cache && n.key == key {
			return true
		}
	}
	return false
}
