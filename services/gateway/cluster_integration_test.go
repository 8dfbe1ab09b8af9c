//go:build integration

package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// onCluster lets gateways that are run from now on count on a Redis Cluster.
func (d *deployment) onCluster(c *servertest.RedisCluster) {
	d.redis = func(o *redis.UniversalOptions) { o.Addrs, o.IsClusterMode = c.Addrs(), true }
}

// A hundred of each algorithm, none of which refills while the test runs.
var hundreds = map[string]string{
	"fixed":   `{"algorithm":"fixedWindow","limit":100,` + year + `}`,
	"sliding": `{"algorithm":"slidingWindow","limit":100,` + year + `}`,
	"gcra":    `{"algorithm":"gcra","limit":1,"window":"24h","burst":100}`,
	"bucket":  `{"algorithm":"tokenBucket","limit":1,"window":"24h","burst":100}`,
	"quota":   `{"algorithm":"quota","kind":"renewing","limit":100,"period":"year"}`,
}

// Two gateways, 32 clients, every algorithm, one Redis and a Cluster of three
// masters, on which tenant and endpoint lie in slots of their own: exactly what
// the tenant's limit allows passes, and both counters hold exactly that.
func TestEveryAlgorithmPassesExactlyAHundred(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	for name, limit := range hundreds {
		d.put(catalog.Topic, name, catalog.Service{
			Name: name, Prefix: "/" + name + "/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}},
			Endpoints: []catalog.Endpoint{{Pattern: "GET /" + name + "/{thing}"}},
		})
		rule := func(id, subject, limit string) string {
			return `{"id":"` + id + `","subject":{"kind":"` + subject + `","value":"*"},"scope":{"service":"` + name + `"},"metric":"` + name + `","limit":` + limit + `}`
		}
		d.putRule(rule(name+"-tenant", "tenant", limit))
		d.putRule(rule(name+"-endpoint", "endpoint", `{"algorithm":"fixedWindow","limit":`+strconv.Itoa(plenty)+`,`+year+`}`))
	}
	t.Run("one Redis", func(t *testing.T) {
		addr, prefix := servertest.Redis(t)
		checkHundreds(t, []*running{d.runReady("one-1", addr, prefix, nil), d.runReady("one-2", addr, prefix, nil)})
	})
	t.Run("Cluster", func(t *testing.T) {
		d.onCluster(servertest.StartRedisCluster(t))
		checkHundreds(t, []*running{d.runReady("cluster-1", "", "", nil), d.runReady("cluster-2", "", "", nil)})
	})
}

func checkHundreds(t *testing.T, gateways []*running) {
	t.Helper()
	for name := range hundreds {
		look := func(g *running) answer {
			return do(t, http.MethodGet, g.base+"/"+name+"/x", "X-Tenant-Id", "acme", "Sluice-Cost", "0")
		}
		servertest.Eventually(t, patience, "the counters to be whole", func() bool {
			return look(gateways[0]).StatusCode == http.StatusOK && look(gateways[1]).StatusCode == http.StatusOK
		})
		var (
			passed  atomic.Int64
			clients sync.WaitGroup
		)
		for client := range 32 {
			clients.Go(func() {
				for i := range 6 {
					switch a := do(t, http.MethodGet, gateways[(client+i)%2].base+"/"+name+"/x", "X-Tenant-Id", "acme"); a.StatusCode {
					case http.StatusOK:
						passed.Add(1)
					case http.StatusTooManyRequests:
					default:
						t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
					}
				}
			})
		}
		clients.Wait()
		a := look(gateways[0])
		left := map[string]int64{}
		for _, field := range parseField(t, a.Header.Values("RateLimit")) {
			left[field.name] = field.params["r"]
		}
		if n := passed.Load(); n != 100 || left[name+"-tenant"] != 0 || left[name+"-endpoint"] != plenty-n {
			t.Errorf("%s: %d passed, want 100; %v are left", name, n, left)
		}
	}
}

// A tenant's slot moves to another master under load: nobody is answered a 500
// or denied, and what passed is charged, once.
func TestSlotMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	d := withPolicies(t)
	c := servertest.StartRedisCluster(t)
	d.onCluster(c)
	f := &faulty{}
	f.gate = d.runReady("gw-moving", "", "", func(c *Config) { c.Store = DefaultConfig().Store; c.Store.KeyPrefix = "" })
	slot, err := c.Clients[0].ClusterKeySlot(t.Context(), "{t:acme}").Result()
	must(t, err)
	from := int(slot) * 3 / 16384
	r := f.run(t, fault{
		begin: func(t testing.TB, _ *faulty) { c.Move(t, int(slot), from, (from+1)%3) },
		end:   func(testing.TB, *faulty) {},
	}, 0)
	t.Logf("p99 %s quiet, %s from when the slot began to move, back %s after its end", p99(r.quiet), p99(r.during), r.back)
	f.checkAnswers(t) // when quotas go on is when the slot's new process is said to be whole
	f.checkCharged(t, fault{})
	if n, err := c.Clients[(from+1)%3].ClusterCountKeysInSlot(t.Context(), int(slot)).Result(); err != nil || n == 0 {
		t.Errorf("the new master holds %d keys of the slot: %v", n, err)
	}
}

// One of three masters falls silent: its tenants are answered by policy without
// waiting, those of the others as ever, and it is back by itself.
func TestSilentMasterIsItsOwnTenantsMatter(t *testing.T) {
	t.Parallel()
	d := withPolicies(t)
	c := servertest.StartRedisCluster(t)
	d.onCluster(c)
	g := d.runReady("gw-silent", "", "", func(c *Config) { c.Store.Budget = 100 * time.Millisecond })
	silent, err := c.Clients[0].ClusterKeySlot(t.Context(), "{t:acme}").Result()
	must(t, err)
	node := int(silent) * 3 / 16384
	other := ""
	for i := 0; other == ""; i++ {
		tenant := "other" + strconv.Itoa(i)
		slot, err := c.Clients[0].ClusterKeySlot(t.Context(), "{t:"+tenant+"}").Result()
		must(t, err)
		if int(slot)*3/16384 != node {
			other = tenant
		}
	}
	degraded := func(tenant string) bool {
		a := do(t, http.MethodGet, g.base+"/open/x", "X-Tenant-Id", tenant)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %d", tenant, a.StatusCode)
		}
		return a.Header.Get("Sluice-Degraded") != ""
	}
	servertest.Eventually(t, patience, "both to be counted", func() bool { return !degraded("acme") && !degraded(other) })
	must(t, c.Nodes[node].Pause())
	defer func() { _ = c.Nodes[node].Resume() }() // it was resumed where the test went well
	servertest.Eventually(t, patience, "its breaker to open", func() bool { return degraded("acme") && !g.counters.store.Available() })
	for range 50 {
		if degraded(other) {
			t.Fatalf("%s's master is there, and is not asked", other)
		}
	}
	must(t, c.Nodes[node].Resume())
	servertest.Eventually(t, patience, "both to be counted again", func() bool {
		return !degraded("acme") && !degraded(other) && g.counters.store.Available()
	})
}
