package epoch

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	script "github.com/sluice-platform/sluice/schemas/redis"
)

// restoring begins the epoch of a restore that is under way.
const restoring = "?"

// RunIDLength is how long the run id is with which an epoch begins.
const RunIDLength = 40

var (
	epochScript    = redis.NewScript(script.Epoch)
	identityScript = redis.NewScript(script.Identity)
)

// RunID is the process's of an epoch, empty where it is none.
func RunID(epoch string) string {
	if len(epoch) <= RunIDLength {
		return ""
	}
	return epoch[:RunIDLength]
}

// RunIDOf asks the process at the other end of a connection for its run id; empty
// where its user may not read it (INFO).
func RunIDOf(ctx context.Context, conn redis.Scripter) (string, error) {
	id, err := identityScript.Eval(ctx, conn, nil).Text()
	if err != nil {
		return "", fmt.Errorf("ask redis for its run id: %w", err)
	}
	return id, nil
}

// Standing is what an epoch says, and which process holds it.
type Standing struct {
	// identity is RUN_ID:REPLID of the process; empty where it does not tell, or is
	// a replica.
	identity string
	text     string
}

// RunID is the process's own.
func (s Standing) RunID() string { return RunID(s.identity) }

// Epoch is the epoch, whether the restore is over or not, where it is of this
// process and its data; else empty.
func (s Standing) Epoch() string {
	e := strings.TrimPrefix(s.text, restoring)
	if s.identity == "" || !strings.HasPrefix(e, s.identity+":") {
		return ""
	}
	return e
}

// Whole reports that the quotas beside the epoch are.
func (s Standing) Whole() bool { return s.Epoch() != "" && !strings.HasPrefix(s.text, restoring) }

// Op is what is done to an epoch; see epoch.lua.
type Op string

// Operations on an epoch.
const (
	Look   Op = "look"
	Begin  Op = "begin"
	Reopen Op = "reopen"
	Join   Op = "join"
	Seal   Op = "seal"
)

// Do runs an operation on the epoch of each slot of a process, the first one by
// itself and the others in one round trip, in order.
func Do(ctx context.Context, client redis.UniversalClient, prefix string, slots []int, op Op, given string) ([]Standing, error) {
	_, cluster := client.(*redis.ClusterClient)
	cmds := make([]*redis.Cmd, len(slots))
	// The process knows the script after this one.
	cmds[0] = epochScript.Run(ctx, client, []string{Key(prefix, cluster, slots[0])}, string(op), given)
	if len(slots) > 1 {
		pipe := client.Pipeline()
		for i, slot := range slots[1:] {
			cmds[1+i] = epochScript.EvalSha(ctx, pipe, []string{Key(prefix, cluster, slot)}, string(op), given)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	all := make([]Standing, len(cmds))
	for i, cmd := range cmds {
		answer, err := cmd.StringSlice()
		if err == nil && len(answer) != 2 {
			err = fmt.Errorf("%d answers", len(answer))
		}
		if err != nil {
			return nil, fmt.Errorf("%s epoch of slot %d: %w", op, slots[i], err)
		}
		all[i] = Standing{answer[0], answer[1]}
	}
	return all, nil
}

// Process is one Redis that takes charges: alone, or a master of a Cluster with
// its slots.
type Process struct {
	Addr  string // empty of one Redis
	Slots []int
}

// Home is the slot whose epoch speaks for all of the process's.
func (p *Process) Home() int { return p.Slots[0] }

// Processes lists those that take charges.
func Processes(ctx context.Context, client redis.UniversalClient) ([]Process, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return []Process{{Slots: []int{0}}}, nil
	}
	//lint:ignore SA1019 Redis 6.2 has no CLUSTER SHARDS
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("list the cluster's slots: %w", err)
	}
	var all []Process
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
			all = append(all, Process{Addr: addr})
		}
		for slot := r.Start; slot <= r.End; slot++ {
			all[i].Slots = append(all[i].Slots, slot)
		}
	}
	return all, nil
}
