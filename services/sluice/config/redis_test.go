package config

import (
	"strings"
	"testing"
)

// Each setting of the Redis connection that does not go with the others is
// named, and what goes together passes.
func TestRedisModes(t *testing.T) {
	t.Parallel()
	const at = "redis.counters."
	for name, c := range map[string]struct {
		change func(*RedisConnection)
		want   string // empty: right
	}{
		"as it comes":     {func(*RedisConnection) {}, ""},
		"one of addrs":    {func(r *RedisConnection) { r.Addrs = []string{"a:1"} }, ""},
		"sentinel":        {func(r *RedisConnection) { r.Mode, r.Addrs, r.MasterName = RedisSentinel, []string{"a:1", "b:1"}, "m" }, ""},
		"cluster":         {func(r *RedisConnection) { r.Mode, r.Addrs = RedisCluster, []string{"a:1", "b:1"} }, ""},
		"cluster of one":  {func(r *RedisConnection) { r.Mode = RedisCluster }, ""},
		"other mode":      {func(r *RedisConnection) { r.Mode = "ring" }, at + "mode"},
		"two for single":  {func(r *RedisConnection) { r.Addrs = []string{"a:1", "b:1"} }, at + "addrs"},
		"no address":      {func(r *RedisConnection) { r.Addrs = []string{"b"} }, at + "addrs[0]"},
		"no master":       {func(r *RedisConnection) { r.Mode = RedisSentinel }, at + "masterName"},
		"needless master": {func(r *RedisConnection) { r.MasterName = "m" }, at + "masterName"},
		"needless secret": {func(r *RedisConnection) { r.SentinelPassword = "s" }, at + "sentinelPassword"},
		"cluster and db":  {func(r *RedisConnection) { r.Mode, r.DB = RedisCluster, 3 }, at + "db"},
	} {
		cfg := Default()
		c.change(&cfg.Redis.Counters)
		var got []string
		for _, err := range cfg.check() {
			got = append(got, err.Error())
		}
		text := strings.Join(got, "; ")
		if c.want == "" && text != "" || c.want != "" && (len(got) != 1 || !strings.HasPrefix(text, c.want+": ")) {
			t.Errorf("%s: %q, want one that begins with %q", name, text, c.want)
		}
	}
}
