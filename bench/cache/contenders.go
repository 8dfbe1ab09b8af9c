package main

import "context"

// reader reads the one key.
type reader func(ctx context.Context) (string, error)

// loader asks the source for it.
type loader func(ctx context.Context) (string, error)

// contender is one way to read a key that may be missing or old.
type contender struct {
	name string
	// part is the module that does it, for its version; empty is our own.
	part string
	// setup says how it is configured.
	setup string
	// open makes the reader of one process; nil for proxies. What it opens ends with the process.
	open func(ctx context.Context, n node, load loader) (reader, error)
	// serve starts n proxies in front of the origin; nil for libraries.
	serve func(ctx context.Context, s *stand, n int) (proxies, error)
}

// contenders in the order of the table. It is filled in init: those that start processes refer to it.
var contenders []contender

func init() {
	contenders = []contender{
		{name: "none", part: "github.com/redis/go-redis/v9", open: unprotected,
			setup: "GET from Redis; who misses loads, and writes with SET PX TTL"},
		{name: "singleflight", part: "golang.org/x/sync", open: singleFlighted,
			setup: "the same inside Group.Do, one Group a process"},
		{name: "otter", part: "github.com/maypok86/otter/v2", open: otterExpiring,
			setup: "Cache.Get with a Loader, ExpiryWriting(TTL); no Redis"},
		{name: "otter-refresh", part: "github.com/maypok86/otter/v2", open: otterRefreshing,
			setup: "and RefreshWriting(¾ TTL)"},
		{name: "sturdyc", part: "github.com/viccon/sturdyc", open: sturdy,
			setup: "WithEarlyRefreshes(½ TTL, ¾ TTL, TTL, 5 s) and WithDistributedStorageEarlyRefreshes(Redis, ½ TTL); records live 2 TTL at both places"},
		{name: "rueidisaside", part: "github.com/redis/rueidis/rueidisaside", open: aside,
			setup: "CacheAsideClient.Get(TTL): client-side caching (DoCache), and its lock by placeholder; ClientTTL 10 s, the default"},
		{name: "cache-lock", open: sluiceLock, setup: "libs/cache: TTL, no jitter, RedisTimeout 2 s (the other clients wait longer); all else by default"},
		{name: "cache-xfetch", open: sluiceXFetch, setup: "and Beta 1"},
		{name: "cache-swr", open: sluiceSWR, setup: "instead StaleWhileRevalidate ½ TTL"},
		{name: "nginx", part: "nginx", serve: nginxPlain,
			setup: "proxy_cache alone, freshness from the answer's Cache-Control; one nginx a node, one worker each"},
		{name: "nginx-lock-update", part: "nginx", serve: nginxProtected,
			setup: "and proxy_cache_lock on, its timeout and age 5 s as by default; proxy_cache_use_stale updating error timeout http_5xx; proxy_cache_background_update on"},
		{name: "gateway", serve: gateways,
			setup: "one gateway a node, all on one Redis; the route's cache {ttl: TTL, staleWhileRevalidate: ½ TTL}; it also writes a usage event a request"},
	}
}
