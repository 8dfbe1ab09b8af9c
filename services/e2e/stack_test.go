//go:build integration

package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
)

const adminToken = "e2e-admin-token"

// stack is a set of servers, the processes on them, and a service behind the gate.
type stack struct {
	t *testing.T

	postgres    string // DSN
	redisAddr   string
	redisPrefix string
	cachePrefix string // of stored answers in the same Redis; empty: gateways keep them to themselves
	brokers     []string
	topicPrefix string
	search      servertest.SearchServer
	slot        string

	upstream *httptest.Server
	served   atomic.Int64 // requests the service behind the gate saw

	control string // host:port of the control plane
	gates   []*gate
}

// gate is a gateway process and where it listens.
type gate struct {
	*process
	addr string
}

// sharedStack stands on the servers all tests share.
func sharedStack(t *testing.T) *stack {
	t.Helper()
	s := newStack(t)
	s.postgres = servertest.Postgres(t)
	s.redisAddr, s.redisPrefix = servertest.Redis(t)
	s.brokers, s.topicPrefix = servertest.Kafka(t)
	s.search = servertest.Search(t)
	return s
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, slot: "e2e_" + strings.ReplaceAll(uuid.NewString()[:13], "-", ""), control: freeAddr(t)}
	s.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.served.Add(1)
		fmt.Fprintln(w, "hello")
	}))
	t.Cleanup(s.upstream.Close)
	return s
}

func (s *stack) base() map[string]any {
	sum := sha256.Sum256([]byte(adminToken))
	redis := map[string]any{"counters": map[string]any{"addr": s.redisAddr, "keyPrefix": s.redisPrefix}}
	if s.cachePrefix != "" {
		redis["cache"] = map[string]any{"addr": s.redisAddr, "keyPrefix": s.cachePrefix}
	}
	return map[string]any{
		"kafka":    map[string]any{"brokers": s.brokers, "topicPrefix": s.topicPrefix},
		"postgres": map[string]any{"url": s.postgres},
		"redis":    redis,
		"usage":    map[string]any{"store": "elasticsearch"},
		"elasticsearch": map[string]any{
			"url": s.search.URL, "flavor": s.search.Flavor, "indexPrefix": s.search.IndexPrefix,
		},
		"controlplane": map[string]any{
			"listen": s.control,
			"tokens": []map[string]any{{"name": "e2e", "role": "admin", "sha256": hex.EncodeToString(sum[:])}},
		},
		"relay":   map[string]any{"slot": s.slot},
		"keeper":  map[string]any{"group": s.topicPrefix + "keeper", "checkpointEvery": "1s"},
		"indexer": map[string]any{"group": s.topicPrefix + "indexer"},
	}
}

// process makes one that runs a target, with the stack's configuration.
func (s *stack) process(name, target string, more map[string]any) *process {
	s.t.Helper()
	config := s.base()
	maps.Copy(config, more)
	return newProcess(s.t, name, target, config)
}

// gateway makes one that trusts identity headers from loopback.
func (s *stack) gateway(id string) *gate {
	s.t.Helper()
	addr := freeAddr(s.t)
	g := &gate{addr: addr, process: s.process(id, "gateway", map[string]any{
		"gateway": map[string]any{
			"id": id, "listen": addr,
			"identity": map[string]any{"trustedCidrs": []string{"127.0.0.0/8"}},
			"spool":    map[string]any{"dir": s.t.TempDir()},
			// Starting JVMs starve Redis on a small machine; what a slow Redis
			// does is not what these tests ask.
			"store": map[string]any{"budget": "2s", "timeout": "5s"},
		},
	})}
	s.gates = append(s.gates, g)
	return g
}

// database runs f on a connection of its own.
func (s *stack) database(f func(ctx context.Context, db *pgx.Conn) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	db, err := pgx.Connect(ctx, s.postgres)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close(context.Background())
	if err := f(ctx, db); err != nil {
		s.t.Fatal(err)
	}
}
