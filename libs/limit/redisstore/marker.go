package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	script "github.com/sluice-platform/sluice/schemas/redis"
)

// Names of keys beside the counters.
const (
	markerKey   = "marker"
	lineageKey  = "lineage"
	gatewaysKey = "gateways"
)

// unsealed begins the marker of a restore that is under way.
const unsealed = "?"

var (
	markerScript  = redis.NewScript(script.Marker)
	lineageScript = redis.NewScript(script.Lineage)
	attendScript  = redis.NewScript(script.Attend)
	floorsScript  = redis.NewScript(script.Floors)
)

// slotTags has a hash tag of each slot, the first of the numbers from 0 that
// lies in it.
var slotTags = sync.OnceValue(func() *[numSlots]string {
	var tags [numSlots]string
	for i, found := 0, 0; found < numSlots; i++ {
		tag := strconv.Itoa(i)
		if slot := slotOf(tag); tags[slot] == "" {
			tags[slot] = tag
			found++
		}
	}
	return &tags
})

// besides names a key that lies beside the counters of a slot; of one Redis
// there is slot 0 only.
func besides(prefix string, cluster bool, slot int, name string) string {
	if !cluster {
		return prefix + name
	}
	return prefix + "{" + slotTags()[slot] + "}:" + name
}

// MarkerKey names the marker of the quotas beside a key, which is without the
// prefix.
func MarkerKey(client redis.UniversalClient, prefix, key string) string {
	_, cluster := client.(*redis.ClusterClient)
	return besides(prefix, cluster, slotOf(key), markerKey)
}

// process is what quotas are whole or not whole of: one Redis, or a master of a
// Cluster with its slots.
type process struct {
	addr  string
	slots []int
}

// home is the slot whose keys speak for all of the process's.
func (p *process) home() int { return p.slots[0] }

// processes lists those that take charges.
func processes(ctx context.Context, client redis.UniversalClient) ([]process, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return []process{{slots: []int{0}}}, nil
	}
	//lint:ignore SA1019 Redis 6.2 has no CLUSTER SHARDS
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("list the cluster's slots: %w", err)
	}
	var all []process
	at := map[string]int{}
	for _, r := range ranges {
		if len(r.Nodes) == 0 {
			continue
		}
		addr := r.Nodes[0].Addr
		i, known := at[addr]
		if !known {
			i = len(all)
			at[addr] = i
			all = append(all, process{addr: addr})
		}
		for slot := r.Start; slot <= r.End; slot++ {
			all[i].slots = append(all[i].slots, slot)
		}
	}
	return all, nil
}

// standing is what a marker says, and who holds it.
type standing struct{ runID, marker string }

// incarnation is the marker, sealed or not, where it is of this process.
func (s standing) incarnation() string {
	m := strings.TrimPrefix(s.marker, unsealed)
	if s.runID == "" || !strings.HasPrefix(m, s.runID+":") {
		return ""
	}
	return m
}

// whole reports that the quotas beside the marker are.
func (s standing) whole() bool {
	return s.incarnation() != "" && !strings.HasPrefix(s.marker, unsealed)
}

func standingOf(cmd *redis.Cmd) (standing, error) {
	answer, err := cmd.StringSlice()
	if err != nil {
		return standing{}, err
	}
	if len(answer) != 2 {
		return standing{}, fmt.Errorf("marker: %d answers", len(answer))
	}
	return standing{answer[0], answer[1]}, nil
}
