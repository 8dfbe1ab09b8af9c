package keyspace

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// batch is how many keys Redis looks at in one go: about a millisecond of its time.
const batch = 1000

// Each calls do with the keys that begin with prefix, some at a time, and with a client of the node that has them. A
// key may come twice; one that is made or deleted meanwhile may come or not. do is never called twice at once; its
// error ends the walk.
func Each(ctx context.Context, client redis.UniversalClient, prefix string, do func(node redis.Cmdable, keys []string) error) error {
	match := escaper.Replace(prefix) + "*"
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return walk(ctx, client, match, do)
	}
	var mu sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return walk(ctx, master, match, do)
	})
}

// escaper keeps a prefix from being a pattern.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func walk(ctx context.Context, node redis.Cmdable, match string, do func(redis.Cmdable, []string) error) error {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, match, batch).Result()
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if len(keys) > 0 {
			if err := do(node, keys); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
