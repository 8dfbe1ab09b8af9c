package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// floor is the least that one number of a quota is known to be.
type floor struct {
	key    string
	number int64
	expiry int64 // s since the epoch; 0: never
}

// floorsACall holds Redis for some 100 µs.
const floorsACall = 64

// raise brings numbers up to their floors, one call after the other, so that
// decisions come in between. On a Cluster calls are of one slot each.
func raise(ctx context.Context, client redis.UniversalClient, floors []floor) (raised int, err error) {
	_, cluster := client.(*redis.ClusterClient)
	slots := map[int][]floor{}
	for _, f := range floors {
		slot := 0
		if cluster {
			slot = slotOf(f.key)
		}
		slots[slot] = append(slots[slot], f)
	}
	for _, all := range slots {
		for len(all) > 0 {
			n := min(floorsACall, len(all))
			done, err := raiseCall(ctx, client, all[:n])
			if err != nil {
				return raised, fmt.Errorf("raise quotas to what is known of them: %w", err)
			}
			raised, all = raised+done, all[n:]
		}
	}
	return raised, nil
}

func raiseCall(ctx context.Context, client redis.UniversalClient, floors []floor) (int, error) {
	keys, args := make([]string, 0, len(floors)), make([]any, 0, 2*len(floors))
	for _, f := range floors {
		keys, args = append(keys, f.key), append(args, f.number, f.expiry)
	}
	answer, err := floorsScript.Run(ctx, client, keys, args...).Int64Slice()
	if err != nil {
		return 0, err
	}
	return int(answer[0]), nil
}
