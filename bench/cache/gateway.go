package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/bench/fleet"
	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway"
)

// gatewayNode is a process that is a gateway. It says its address, then ready, and ends with its standard input.
type gatewayNode struct {
	ID, Redis, Spool string
	Brokers          []string
}

func (g *gatewayNode) stream() stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers = g.Brokers
	return cfg
}

func (g *gatewayNode) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg := gateway.DefaultConfig()
	cfg.ID, cfg.Listen, cfg.Spool.Dir = g.ID, "127.0.0.1:0", g.Spool
	counters, answers := &redis.UniversalOptions{Addrs: []string{g.Redis}}, &redis.UniversalOptions{Addrs: []string{g.Redis}}
	redisstore.Configure(counters, cfg.Store.Timeout)
	cfg.Cache.RedisTimeout = 2 * time.Second // as libs/cache here
	cache.ConfigureRedis(answers, cfg.Cache.RedisTimeout)
	s, err := gateway.New(cfg, gateway.Deps{
		Redis: redis.NewUniversalClient(counters), Cache: redis.NewUniversalClient(answers), Stream: g.stream(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	go func() { // to the process's end
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go func() { // to the process's end
		for s.Ready() != nil && ctx.Err() == nil {
			<-time.After(10 * time.Millisecond)
		}
		fleet.Say(s.Addr())
	}()
	return s.Run(ctx)
}

func gateways(ctx context.Context, s *stand, n int) (p proxies, err error) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return p, fmt.Errorf("start an in-process Kafka: %w", err)
	}
	p.stops = append(p.stops, broker.Close)
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	g := gatewayNode{Redis: s.redis.Addr(), Brokers: broker.ListenAddrs()}
	if err := publish(ctx, g.stream(), s); err != nil {
		return p, fmt.Errorf("publish the catalog: %w", err)
	}
	var started fleet.Fleet
	for i := range n {
		g.ID = "gw-" + strconv.Itoa(i)
		g.Spool = filepath.Join(s.dir, g.ID)
		c, err := fleet.Start(ctx, node{Gateway: &g}, nil)
		if err != nil {
			return p, err
		}
		started = append(started, c)
		p.stops = append([]func(){c.Kill}, p.stops...) // before the broker
	}
	for _, c := range started {
		addr, err := c.Line()
		if err != nil {
			return p, err
		}
		p.addrs = append(p.addrs, addr)
	}
	return p, nil
}

// publish does what the control plane and the relay do: it tells gateways of one service, and that this is all.
func publish(ctx context.Context, cfg stream.Config, s *stand) error {
	topics, err := events.Topics()
	if err != nil {
		return err
	}
	if err := stream.EnsureTopics(ctx, cfg, topics, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	client, err := kgo.NewClient(cfg.ClientOptions()...)
	if err != nil {
		return err
	}
	defer client.Close()
	const name = "shop"
	service, err := json.Marshal(catalog.Service{
		Name: name, Prefix: "/shop/", Upstreams: []catalog.Upstream{{URL: "http://" + s.origin.addr}},
		Cache: &catalog.Cache{TTL: s.TTL.String(), StaleWhileRevalidate: (s.TTL / 2).String()},
	})
	if err != nil {
		return err
	}
	now := time.Now()
	records := []*kgo.Record{{
		Topic: cfg.Topic(catalog.Topic), Key: []byte(name), Value: service,
		Headers: stream.Stamp{Generation: 1, Version: 1, CommittedAt: now, RelayedAt: now}.Headers(),
	}}
	for _, topic := range []string{rules.Topic, overrides.Topic, catalog.Topic, keys.Topic, grants.Topic, purges.Topic} {
		m := events.Mirror{Generation: 1, Origin: "bench", Digest: stream.FormatDigest(0), At: now.UnixMicro(), Relay: "bench"}
		if topic == catalog.Topic {
			m.Count, m.Digest = 1, stream.FormatDigest(stream.Digest(name, 1, service))
		}
		mirror, err := json.Marshal(m)
		if err != nil {
			return err
		}
		records = append(records, &kgo.Record{Topic: cfg.Topic(topic), Key: []byte(events.MirrorKey), Value: mirror})
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}
