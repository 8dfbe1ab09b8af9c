package sluice

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/sluice/client"
	"github.com/sluice-platform/sluice/services/sluice/config"
	"github.com/sluice-platform/sluice/services/sluice/dev"
)

// devSealingKey seals webhooks' secrets in development mode; as public as the
// tokens.
const devSealingKey = "dev:ZGV2ZWxvcG1lbnQtb25seS1rZXktb2YtMzItYnl0ZXM="

// Tokens of development mode, public by their nature.
const (
	devAdmin    = "dev-admin"
	devReadonly = "dev-readonly"
	seedActor   = "dev-seed"
)

// devFlags are the flags of sluice dev.
// maxPortOffset keeps the highest port, Kafka's 19092, below 65536 by a round number.
const maxPortOffset = 46000

type devFlags struct {
	from          sources
	data          string
	offset        int
	elasticsearch string
	flavor        string
	postgres      int
	redis         int
	kafka         int
	reset         bool
	printConfig   bool
}

func newDev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, servers and demo data included",
		Long: "Run all modules in one process, with PostgreSQL, Redis and Kafka of their own, a demo\n" +
			"service behind the gateway and demo rules. For development only.\n\n" +
			"It has a configuration of its own over the defaults (ports, tokens, identity\n" +
			"headers): --print-config shows it, sluice config does not.",
		Args: client.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.from.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "data", "`folder` of all data")
	flags.IntVar(&f.offset, "port-offset", 0, "add `N` to every port, 0 to 46000")
	flags.StringVar(&f.elasticsearch, "elasticsearch", "", "`URL` of an Elasticsearch to keep usage in; default: Postgres")
	flags.StringVar(&f.flavor, "elasticsearch-flavor", "", "elasticsearch or opensearch")
	flags.IntVar(&f.postgres, "postgres-port", 15432, "port of the PostgreSQL it starts (not started where postgres.url is configured)")
	flags.IntVar(&f.redis, "redis-port", 16379, "port of the Redis it starts (not started where redis.counters.addr is configured)")
	flags.IntVar(&f.kafka, "kafka-port", 19092, "port of the Kafka in process (not there where kafka.brokers is configured)")
	flags.BoolVar(&f.reset, "reset", false, "delete all data of before, then start")
	flags.BoolVar(&f.printConfig, "print-config", false, "print the configuration in force as YAML, secrets masked, and start nothing")
	return cmd
}

// run is the whole life of sluice dev: look, start servers, run modules, stop
// modules, stop servers.
func (f *devFlags) run(cmd *cobra.Command) (err error) {
	if f.offset < 0 || f.offset > maxPortOffset {
		return fmt.Errorf("--port-offset must be 0 to %d, not %d", maxPortOffset, f.offset)
	}
	began := time.Now()
	seedToken := rand.Text()
	loaded, err := f.from.load(cmd, f.mode(seedToken))
	if err != nil {
		return err
	}
	cfg := f.usageStore(loaded)
	log := newLogger(cfg.Log, cmd.ErrOrStderr())
	slog.SetDefault(log) // what libraries print with package log, such as net/http, becomes lines of it
	options := f.servers(loaded, log)
	if f.printConfig {
		return printDevConfig(cmd.OutOrStdout(), loaded, cfg, options)
	}
	if err := dev.CheckPorts(f.ports(cfg, options)); err != nil {
		return err
	}
	folder, err := dev.OpenFolder(f.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	options.Dir = folder.Path
	if f.reset {
		if err := reset(cmd.Context(), cmd.OutOrStdout(), folder); err != nil {
			return err
		}
	}
	options.Discarded = func(dir string) {
		fmt.Fprintf(cmd.OutOrStdout(), "discarded the PostgreSQL data in %s: they belonged to a data folder that was deleted\n", dir)
	}

	if !loaded.Given("portal.keysFile") {
		if err := dev.MakeTicketKeys(folder.Path); err != nil {
			return err
		}
	}

	fmt.Fprintln(cmd.OutOrStdout(), "starting servers …")
	servers, err := dev.StartServers(cmd.Context(), options)
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(cmd.OutOrStdout(), "stopping servers …")
		err = errors.Join(err, servers.Stop())
	}()
	override(&cfg, servers)
	return runDev(cmd.Context(), cfg, log, servers, seedToken, func() {
		guide(cfg, servers, folder.Path, time.Since(began)).Print(cmd.OutOrStdout())
	})
}

// mode is the layer of sluice dev over the defaults; a user's own values win.
func (f *devFlags) mode(seedToken string) map[string]any {
	local := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port+f.offset)) }
	values := map[string]any{
		"log.level":           "warn",
		"admin.listen":        local(8089),
		"controlplane.listen": local(8088),
		"controlplane.tokens": []any{
			token(devAdmin, "admin", devAdmin), token(devReadonly, "readonly", devReadonly), token(seedActor, "admin", seedToken),
		},
		"gateway.explain.tokens":        []any{gatewayToken(devAdmin), gatewayToken(devReadonly)},
		"gateway.reservations.tokens":   []any{gatewayToken(devAdmin)},
		"gateway.id":                    "gateway",
		"gateway.listen":                local(8080),
		"gateway.more":                  local(8081),
		"gateway.identity.trustedCidrs": "127.0.0.0/8,::1/128",
		"gateway.spool.dir":             dev.Spool(f.data),
		// Everything shares this machine's processors: what waits for its turn
		// there is not away.
		"gateway.store.budget": "100ms",
		"demo.listen":          local(9000),
		"portal.listen":        local(8090),
		"portal.url":           "http://" + local(8090),
		"portal.api.url":       "http://" + local(8088),
		"portal.api.token":     devReadonly,
		"portal.keysFile":      dev.TicketKeys(f.data),
		"usage.store":          config.UsagePostgres,
		// To be tried with a receiver on this machine.
		"webhooks.keys":      devSealingKey,
		"webhooks.allow":     "127.0.0.0/8,::1/128",
		"webhooks.allowHttp": true,
	}
	if f.elasticsearch != "" {
		values["elasticsearch.url"], values["usage.store"] = f.elasticsearch, config.UsageElasticsearch
	}
	if f.flavor != "" {
		values["elasticsearch.flavor"] = f.flavor
	}
	return values
}

func token(name, role, value string) map[string]any {
	sum := sha256.Sum256([]byte(value))
	return map[string]any{"name": name, "role": role, "sha256": hex.EncodeToString(sum[:])}
}

func gatewayToken(value string) map[string]any {
	t := token(value, "", value)
	delete(t, "role")
	return t
}

// usageStore chooses Elasticsearch where the user named one without saying
// which store to use.
func (f *devFlags) usageStore(loaded *config.Loaded) config.Config {
	cfg := loaded.Config
	if loaded.Given("elasticsearch.url") && !loaded.Given("usage.store") {
		cfg.Usage.Store = config.UsageElasticsearch
	}
	return cfg
}

// servers are those to start: what the user configured is there already.
func (f *devFlags) servers(loaded *config.Loaded, log *slog.Logger) dev.ServerOptions {
	options := dev.ServerOptions{Log: log}
	if !loaded.Given("postgres.url") {
		options.PostgresPort = f.postgres + f.offset
	}
	if !loaded.Given("redis.counters.addr") {
		options.RedisPort = f.redis + f.offset
	}
	if !loaded.Given("kafka.brokers") {
		options.KafkaPort = f.kafka + f.offset
	}
	return options
}

// ports are all that will be listened on.
func (f *devFlags) ports(cfg config.Config, o dev.ServerOptions) []dev.Port {
	ports := []dev.Port{
		{Owner: "gateway", Addr: cfg.Gateway.Listen, Change: "--set gateway.listen=HOST:PORT"},
		{Owner: "control plane", Addr: cfg.Controlplane.Listen, Change: "--set controlplane.listen=HOST:PORT"},
		{Owner: "admin port", Addr: cfg.Admin.Listen, Change: "--set admin.listen=HOST:PORT"},
		{Owner: "portal", Addr: cfg.Portal.Listen, Change: "--set portal.listen=HOST:PORT"},
		{Owner: "demo service", Addr: cfg.Demo.Listen, Change: "--set demo.listen=HOST:PORT"},
	}
	for _, addr := range cfg.Gateway.More {
		ports = append(ports, dev.Port{Owner: "second gateway", Addr: addr, Change: "--set gateway.more=HOST:PORT"})
	}
	for _, server := range []struct {
		name string
		port int
	}{{"postgres", o.PostgresPort}, {"redis", o.RedisPort}, {"kafka", o.KafkaPort}} {
		if server.port != 0 {
			ports = append(ports, dev.Port{
				Owner: server.name, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(server.port)),
				Change: "--" + server.name + "-port PORT", Patient: true,
			})
		}
	}
	return ports
}

// override points the configuration at the servers that were started.
func override(cfg *config.Config, servers *dev.Servers) {
	postgres, redis, brokers := servers.Overrides()
	if postgres != "" {
		cfg.Postgres.URL = service.Secret(postgres)
	}
	if redis != "" {
		cfg.Redis.Counters.Addr = redis
	}
	if brokers != nil {
		cfg.Kafka.Brokers = brokers
	}
}

// runDev runs the table with the demo and two modules of this mode, and calls
// ready once all of them are.
func runDev(ctx context.Context, cfg config.Config, log *slog.Logger, servers *dev.Servers, seedToken string, ready func()) error {
	seed := &dev.Seed{
		API: "http://" + cfg.Controlplane.Listen, Token: service.Secret(seedToken), Actor: seedActor,
		DemoURL: "http://" + cfg.Demo.Listen,
	}
	p, err := newProcess(cfg, log, []string{targetAll, "demo"},
		service.Module{Name: "servers", New: func() (service.Runner, error) { return servers, nil }},
		service.Module{Name: "seed", Needs: []string{"controlplane"}, New: func() (service.Runner, error) { return seed, nil }},
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		if p.awaitReady(ctx) {
			ready()
		}
	}()
	err = p.run(ctx)
	cancel()
	<-announced
	return err
}

// awaitReady polls until every module is ready and does all it should: quotas are
// charged some seconds after the rest is there. What is still wrong then is left
// for /readyz to tell. It returns false when ctx ended first.
func (p *process) awaitReady(ctx context.Context) bool {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	var patience <-chan time.Time
	for !p.group.Well() {
		if patience == nil && p.group.Ready() == nil {
			patience = time.After(wellWithin)
		}
		select {
		case <-poll.C:
		case <-patience:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// wellWithin is how long a start waits for what is ready to do all it should.
const wellWithin = 10 * time.Second

func guide(cfg config.Config, servers *dev.Servers, folder string, took time.Duration) dev.Guide {
	lines := []dev.Line{{Name: "gateway", Addr: "http://" + cfg.Gateway.Listen, About: "serves http://" + cfg.Demo.Listen + " under /demo/"}}
	gateways := []string{cfg.Gateway.Listen}
	for _, addr := range cfg.Gateway.More {
		lines = append(lines, dev.Line{Name: "gateway", Addr: "http://" + addr, About: "another instance, same rules and counters"})
		gateways = append(gateways, addr)
	}
	lines = append(lines,
		dev.Line{Name: "control plane", Addr: "http://" + cfg.Controlplane.Listen, About: "REST API; read it at /docs"},
		dev.Line{Name: "portal", Addr: "http://" + cfg.Portal.Listen, About: "opened by links: POST /v1/customers/ID/portal-links"},
		dev.Line{Name: "admin", Addr: "http://" + cfg.Admin.Listen, About: "/metrics /healthz /readyz /debug/pprof/"},
		dev.Line{Name: "demo service", Addr: "http://" + cfg.Demo.Listen, About: "GET /stats says how many requests arrived"},
	)
	store := "postgres"
	if cfg.Usage.Store == config.UsageElasticsearch {
		store = cfg.Elasticsearch.Flavor + " at " + cfg.Elasticsearch.URL
	}
	program, err := os.Executable()
	if err != nil {
		program = "sluice"
	}
	return dev.Guide{
		Lines: append(lines, servers.Describe()...), Folder: folder,
		Gateways: gateways, ControlPlane: cfg.Controlplane.Listen, Demo: cfg.Demo.Listen, UsageStore: store,
		AdminToken: devAdmin, ReadonlyToken: devReadonly, SluicePath: program, Stores: reconcileKeys(cfg, servers), Took: took,
	}
}

// reconcileKeys are what sluice reconcile must be told beside this process. A
// server that a user configured is left out, since its URL may hold a password:
// it comes from where it came from here.
func reconcileKeys(cfg config.Config, servers *dev.Servers) []string {
	postgres, redis, _ := servers.Overrides()
	keys := []string{"usage.store=" + cfg.Usage.Store}
	if postgres != "" {
		keys = append(keys, "postgres.url="+postgres)
	}
	if redis != "" {
		keys = append(keys, "redis.counters.addr="+redis)
	}
	if cfg.Usage.Store == config.UsageElasticsearch {
		keys = append(keys, "elasticsearch.url="+cfg.Elasticsearch.URL, "elasticsearch.flavor="+cfg.Elasticsearch.Flavor)
	}
	return keys
}
