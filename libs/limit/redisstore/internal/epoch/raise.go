package epoch

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	script "github.com/sluice-platform/sluice/schemas/redis"
)

// Floor is the least that one number of a quota is known to be.
type Floor struct {
	Key    string
	Number int64
	Expiry int64 // s since the epoch; 0: never
}

// floorsACall holds Redis for some 100 µs.
const floorsACall = 64

var raiseScript = redis.NewScript(script.Raise)

// Raise brings numbers up to their floors, one call after the other, so that
// decisions come in between; it returns how many were below. On a Cluster calls
// are of one slot each.
func Raise(ctx context.Context, client redis.UniversalClient, floors []Floor) (raised int, err error) {
	_, cluster := client.(*redis.ClusterClient)
	slots := map[int][]Floor{}
	for _, f := range floors {
		slot := 0
		if cluster {
			slot = SlotOf(f.Key)
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

func raiseCall(ctx context.Context, client redis.UniversalClient, floors []Floor) (int, error) {
	keys, args := make([]string, 0, len(floors)), make([]any, 0, 2*len(floors))
	for _, f := range floors {
		keys, args = append(keys, f.Key), append(args, f.Number, f.Expiry)
	}
	answer, err := raiseScript.Run(ctx, client, keys, args...).Int64Slice()
	if err != nil {
		return 0, err
	}
	return int(answer[0]), nil
}
