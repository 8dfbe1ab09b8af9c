//go:build integration

package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// A gateway whose Redis is not there yet lives, says why it is not ready, and
// is, once Redis came; afterwards Redis away does not make it unready.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	d.putRule(ruleJSON("open", "tenant", "calls", tenOnce, `,"onStoreLoss":"open"`))
	server := servertest.StartRedis(t)
	server.Kill()
	g := d.run("gw", server.Addr(), "", nil)
	servertest.Eventually(t, patience, "Redis alone to be missing", func() bool {
		err := g.Ready()
		return err != nil && strings.HasPrefix(err.Error(), "redis was not reached yet: ")
	})
	// Who asks all the same is answered by the rule's policy.
	servertest.Eventually(t, patience, "an answer by policy", func() bool {
		a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme")
		return a.StatusCode == 200 && a.Header.Get("Sluice-Degraded") != ""
	})
	must(t, server.Start(t.Context()))
	servertest.Eventually(t, patience, "the gateway to be ready", func() bool { return g.Ready() == nil })
	server.Kill()
	servertest.Eventually(t, patience, "an answer by policy", func() bool {
		a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme")
		return a.StatusCode == 200 && a.Header.Get("Sluice-Degraded") != ""
	})
	if err := g.Ready(); err != nil {
		t.Errorf("Redis away makes the gateway unready: %v", err)
	}
}

// Settings that lose counters are told in log and metric, each by name.
func TestSettingsThatLoseCountersAreTold(t *testing.T) {
	t.Parallel()
	good := []string{"--appendonly", "yes", "--no-appendfsync-on-rewrite", "yes", "--auto-aof-rewrite-min-size", "4gb"}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"good":      {good, nil},
		"evicting":  {append(good, "--maxmemory-policy", "allkeys-lru"), []string{"maxmemory-policy"}},
		"no file":   {[]string{"--appendonly", "no"}, []string{"appendonly"}},
		"no sync":   {append(good, "--appendfsync", "no"), []string{"appendfsync"}},
		"rewrites":  {[]string{"--appendonly", "yes"}, []string{"no-appendfsync-on-rewrite", "auto-aof-rewrite-min-size"}},
		"replica":   {append(good, "--replicaof", "127.0.0.1 1"), []string{"role"}},
		"unchecked": {append(good, "--rename-command", "CONFIG", "OTHER"), []string{settingUnchecked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.StartRedisWith(t, devserver.RedisOptions{Args: c.args})
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer client.Close()
			log := new(lockedLog)
			d := &deployment{t: t, log: log}
			check, err := newRedisCheck(client, nil, d.logger())
			if err != nil {
				t.Fatal(err)
			}
			check.look(t.Context())
			check.look(t.Context()) // what was told is not told again
			for _, setting := range c.want {
				if n := testutil.ToFloat64(check.warnings.WithLabelValues(setting)); n != 1 {
					t.Errorf("%s: metric is %v", setting, n)
				}
				if n := strings.Count(log.String(), "setting="+setting+" "); n != 1 {
					t.Errorf("%s is told %d times: %s", setting, n, log)
				}
			}
			if n := testutil.CollectAndCount(check.warnings); n != len(c.want) {
				t.Errorf("%d settings are told, want %d: %s", n, len(c.want), log)
			}
		})
	}
}

// The master is killed under Sentinel: charges go on with the replica that
// takes its place, and nobody is ever answered a 500.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	d := withPolicies(t)
	f, replica, sentinel := underSentinel(t, d, "gw-sentinel")
	stop := f.load(t)
	defer stop()
	servertest.Eventually(t, patience, "a quiet start", func() bool { return whole(f.since(time.Time{}), 20) })
	servertest.Eventually(t, patience, "Sentinel to know the replica", func() bool { return replicas(t, sentinel) == 1 })
	killed := time.Now()
	f.server.Kill()
	servertest.Eventually(t, 2*patience, "charges on the new master", func() bool { return whole(f.since(killed), 20) })
	stop()
	t.Logf("charges went on %s after the master was killed", time.Since(killed))
	f.checkAnswers(t)
	admin := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer admin.Close()
	if n, err := admin.DBSize(t.Context()).Result(); err != nil || n == 0 {
		t.Errorf("the new master holds %d keys: %v", n, err)
	}
}

// underSentinel runs a gateway that is told its Redis, f.server, by a Sentinel,
// which may put the replica in its place.
func underSentinel(t testing.TB, d *deployment, id string) (f *faulty, replica *devserver.Redis, sentinel string) {
	t.Helper()
	f = &faulty{server: servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0"}})}
	replica = servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(f.server.Port())}})
	sentinel = servertest.StartSentinel(t, f.server.Port())
	d.redis = func(o *redis.UniversalOptions) { o.Addrs, o.MasterName = []string{sentinel}, servertest.SentinelMaster }
	defer func() { d.redis = nil }()
	f.gate = d.runReady(id, "", "", func(c *Config) { c.Store = DefaultConfig().Store; c.Store.KeyPrefix = "" })
	return f, replica, sentinel
}

func replicas(t testing.TB, sentinel string) int {
	t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer client.Close()
	all, err := client.Replicas(t.Context(), servertest.SentinelMaster).Result()
	must(t, err)
	return len(all)
}
