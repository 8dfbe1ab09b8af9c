package epoch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	script "github.com/sluice-platform/sluice/schemas/redis"
)

var heartbeatScript = redis.NewScript(script.Heartbeat)

// Heartbeat says to a process that a gateway is there, and to which epoch it has
// reported its totals, empty for none; it returns how the process stands.
func Heartbeat(ctx context.Context, client redis.UniversalClient, prefix string, p *Process, gateway, reported string) (Standing, error) {
	answer, err := heartbeatScript.Run(ctx, client, heartbeatKeys(client, prefix, p), gateway, reported).StringSlice()
	if err == nil && len(answer) != 2 {
		err = fmt.Errorf("%d answers", len(answer))
	}
	if err != nil {
		return Standing{}, fmt.Errorf("heartbeat: %w", err)
	}
	return Standing{answer[0], answer[1]}, nil
}

// Deregister removes a gateway from a process.
func Deregister(ctx context.Context, client redis.UniversalClient, prefix string, p *Process, gateway string) error {
	return client.HDel(ctx, heartbeatKeys(client, prefix, p)[1], gateway).Err()
}

func heartbeatKeys(client redis.UniversalClient, prefix string, p *Process) []string {
	_, cluster := client.(*redis.ClusterClient)
	return []string{Key(prefix, cluster, p.Home()), Beside(prefix, cluster, p.Home(), gatewaysName)}
}

// Gateway is one that sent a heartbeat.
type Gateway struct {
	Name string
	// Seen is when, by Redis's clock, in whole seconds.
	Seen time.Time
	// Epoch is the one that it has reported its totals to.
	Epoch string
}

// forgotten is how long after its last heartbeat a gateway is listed.
const forgotten = 24 * time.Hour

// Gateways lists those that sent a process a heartbeat within a day, and Redis's
// clock.
func Gateways(ctx context.Context, client redis.UniversalClient, prefix string, p *Process) ([]Gateway, time.Time, error) {
	key := heartbeatKeys(client, prefix, p)[1]
	now, err := client.Time(ctx).Result()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask redis for the time: %w", err)
	}
	fields, err := client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list gateways: %w", err)
	}
	var all []Gateway
	for name, text := range fields {
		seconds, reported, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || now.Unix()-n > int64(forgotten/time.Second) {
			_ = client.HDel(ctx, key, name).Err() // the next look does it
			continue
		}
		all = append(all, Gateway{Name: name, Seen: time.Unix(n, 0).UTC(), Epoch: reported})
	}
	return all, now.UTC(), nil
}
