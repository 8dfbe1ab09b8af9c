package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// Times of the check.
const (
	checkEvery   = time.Minute
	checkTimeout = 3 * time.Second
)

// redisCheck waits until Redis was reached once, and looks whether its settings
// would lose counters: at start, and again each minute, for a failover may have
// brought another server.
type redisCheck struct {
	client   redis.UniversalClient
	log      *slog.Logger
	warnings *prometheus.GaugeVec

	reached atomic.Bool
	trouble atomic.Pointer[error]
	told    map[string]string // by setting; of Run's goroutine
}

func newRedisCheck(client redis.UniversalClient, reg prometheus.Registerer, log *slog.Logger) (*redisCheck, error) {
	c := &redisCheck{client: client, log: log, told: map[string]string{}}
	c.warnings = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_redis_config_warnings",
		Help: "1 for each setting of the counters' Redis that can lose counters; setting unchecked: the server does not tell its settings.",
	}, []string{"setting"})
	if reg == nil {
		return c, nil
	}
	if err := reg.Register(c.warnings); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

// ready is nil once Redis was reached; its later absence is the rules' affair.
func (c *redisCheck) ready() error {
	if c.reached.Load() {
		return nil
	}
	if err := c.trouble.Load(); err != nil {
		return fmt.Errorf("redis was not reached yet: %w", *err)
	}
	return errors.New("redis was not reached yet")
}

// Run checks until ctx is cancelled, and returns nil.
func (c *redisCheck) Run(ctx context.Context) error {
	pause := backoff.Backoff{Max: time.Second}
	for !c.ping(ctx) {
		if pause.Wait(ctx) != nil {
			return nil
		}
	}
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		c.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (c *redisCheck) ping(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := c.client.Ping(ctx).Err()
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !redis.HasErrorPrefix(err, "LOADING") && !redis.HasErrorPrefix(err, "NOAUTH") && !redis.HasErrorPrefix(err, "WRONGPASS") {
		c.reached.Store(true)
		return true
	}
	if old := c.trouble.Swap(&err); old == nil {
		c.log.Warn("redis is not reached; the gateway is not ready before it was, once", "cause", err)
	}
	return false
}

// look reads the settings of each server that takes writes, and tells of what
// it did not tell before.
func (c *redisCheck) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var (
		mu    sync.Mutex
		found = map[string]string{}
	)
	one := func(ctx context.Context, client redis.UniversalClient) error {
		wrong, err := settingsOf(ctx, client)
		mu.Lock()
		defer mu.Unlock()
		for name, text := range wrong {
			found[name] = text
		}
		return err
	}
	var err error
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error { return one(ctx, client) })
	} else {
		err = one(ctx, c.client)
	}
	if err != nil {
		return // away: nothing new is known
	}
	c.tell(found)
}

func (c *redisCheck) tell(found map[string]string) {
	for name, text := range found {
		if c.told[name] != text {
			c.log.Warn("a setting of the counters' redis can lose counters or hold them up", "setting", name, "what", text)
		}
		c.warnings.WithLabelValues(name).Set(1)
	}
	for name := range c.told {
		if _, still := found[name]; !still {
			c.warnings.WithLabelValues(name).Set(0)
		}
	}
	c.told = found
}

// settingUnchecked stands for a server that does not tell its settings.
const settingUnchecked = "unchecked"

// settingsOf says what is wrong with a server's settings, by setting.
func settingsOf(ctx context.Context, client redis.UniversalClient) (map[string]string, error) {
	info, err := client.InfoMap(ctx, "replication").Result()
	if err != nil && !isReplyError(err) {
		return nil, err
	}
	wrong := map[string]string{}
	replication := info["Replication"]
	if replication["role"] == "slave" {
		wrong["role"] = "it is a replica: it takes no charges"
	}
	have := map[string]string{}
	for _, name := range []string{
		"maxmemory-policy", "appendonly", "appendfsync", "no-appendfsync-on-rewrite",
		"auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size", "min-replicas-to-write",
	} {
		answer, err := client.ConfigGet(ctx, name).Result()
		if err != nil && !isReplyError(err) {
			return nil, err
		}
		if err != nil {
			wrong[settingUnchecked] = "it does not tell its settings (" + err.Error() + "): see that maxmemory-policy is noeviction and appendonly yes"
			return wrong, nil
		}
		have[name] = answer[name]
	}
	judgeSettings(have, replication, wrong)
	return wrong, nil
}

// leastRewrite is the size below which rewriting the AOF is too frequent: each
// forks, which stops Redis for about 15 ms a gigabyte.
const leastRewrite = 1 << 30

func judgeSettings(have, replication, wrong map[string]string) {
	if p := have["maxmemory-policy"]; p != "" && p != "noeviction" {
		wrong["maxmemory-policy"] = p + " evicts counters when memory is full: set noeviction"
	}
	switch {
	case have["appendonly"] == "no":
		wrong["appendonly"] = "no: a restart loses what was counted since the last save, or everything: set yes"
	case have["appendfsync"] == "no":
		wrong["appendfsync"] = "no: a crash of the machine loses some 30 s of counting: set everysec"
	case have["appendonly"] == "yes":
		if have["no-appendfsync-on-rewrite"] == "no" {
			wrong["no-appendfsync-on-rewrite"] = "no: Redis stands still while a rewrite keeps the disk busy: set yes"
		}
		size, err := strconv.ParseInt(have["auto-aof-rewrite-min-size"], 10, 64)
		if err == nil && size < leastRewrite && have["auto-aof-rewrite-percentage"] != "0" {
			wrong["auto-aof-rewrite-min-size"] = strconv.FormatInt(size>>20, 10) + "mb: frequent rewrites, each a stop of some milliseconds: set 4gb"
		}
	}
	if n := replication["connected_slaves"]; n != "" && n != "0" && have["min-replicas-to-write"] == "0" {
		wrong["min-replicas-to-write"] = "0, with " + n + " replicas: a master cut off from them goes on counting what a failover forgets: set 1"
	}
}

func isReplyError(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "LOADING")
}
