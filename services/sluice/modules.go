package sluice

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/billing"
	"github.com/sluice-platform/sluice/services/controlplane"
	"github.com/sluice-platform/sluice/services/demo"
	"github.com/sluice-platform/sluice/services/gateway"
	"github.com/sluice-platform/sluice/services/indexer"
	"github.com/sluice-platform/sluice/services/keeper"
	"github.com/sluice-platform/sluice/services/portal"
	"github.com/sluice-platform/sluice/services/relay"
	"github.com/sluice-platform/sluice/services/sluice/config"
	"github.com/sluice-platform/sluice/services/webhooks"
)

// Names of modules that code refers to.
const (
	targetAll      = "all"
	modulePostgres = "postgres"
	moduleGateway  = "gateway"
	moduleTickets  = "tickets"
)

// row is one module of the table.
type row struct {
	name string
	// target is what --target calls it; empty for what only others need.
	target string
	about  string
	needs  []string
	// optional rows are not in the target all.
	optional bool
	new      func(c *clients, name string) (service.Runner, error)
}

// table is everything sluice can run, in the order data walks through it.
func table(cfg config.Config) []row {
	var searched []string
	if cfg.Usage.Store == config.UsagePostgres {
		searched = []string{modulePostgres}
	}
	administers := []string{modulePostgres}
	hasPortal := cfg.Portal.KeysFile != ""
	if hasPortal {
		administers = append(administers, moduleTickets)
	}
	rows := []row{
		{name: modulePostgres, about: "schema of the database", new: newPostgres},
		{name: moduleTickets, about: "keys of the portal's links", new: newTickets},
		{name: "controlplane", target: "controlplane", about: "REST API for rules, catalog, keys, customers, usage", needs: administers, new: newControlplane},
		{name: "relay", target: "relay", about: "carries what was written from Postgres to Kafka", needs: []string{modulePostgres}, new: newRelay},
		{name: moduleGateway, target: moduleGateway, about: "decides and forwards requests (gateway.more adds instances)", new: newGateway(cfg.Gateway.Config)},
		{name: "keeper", target: "keeper", about: "checkpoints quota use in Postgres", needs: []string{modulePostgres}, new: newKeeper},
		{name: "billing", target: "billing", about: "works out invoices", needs: []string{modulePostgres}, new: newBilling},
		{name: "indexer", target: "indexer", about: "makes usage events searchable", needs: searched, new: newIndexer},
		{name: "webhooks", target: "webhooks", about: "delivers quota events to webhooks", needs: []string{modulePostgres}, new: newWebhooks},
		{name: "portal", target: "portal", about: "shows customers their use and invoices (needs portal.keysFile)", needs: []string{moduleTickets}, optional: !hasPortal, new: newPortal},
		{name: "demo", target: "demo", about: "a service to put behind the gateway", optional: true, new: newDemo},
	}
	for i, listen := range cfg.Gateway.More {
		n := i + 2
		rows = append(rows, row{
			name: moduleGateway + "-" + strconv.Itoa(n), target: moduleGateway,
			new: newGateway(furtherGateway(cfg.Gateway.Config, listen, n)),
		})
	}
	return rows
}

// choose turns targets into modules: the rows asked for and what they need.
func choose(rows []row, targets []string, c *clients) ([]service.Module, error) {
	wanted := map[string]bool{}
	for _, target := range targets {
		if err := want(rows, strings.TrimSpace(target), wanted); err != nil {
			return nil, err
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("--target names no module: give all, or some of %s", strings.Join(targetNames(rows), ", "))
	}
	for _, r := range rows {
		if wanted[r.name] {
			for _, need := range r.needs {
				wanted[need] = true
			}
		}
	}
	var modules []service.Module
	for _, r := range rows {
		if wanted[r.name] {
			modules = append(modules, service.Module{
				Name: r.name, Needs: r.needs,
				New: func() (service.Runner, error) { return r.new(c, r.name) },
			})
		}
	}
	return modules, nil
}

func want(rows []row, target string, wanted map[string]bool) error {
	found := false
	for _, r := range rows {
		if r.target != "" && (r.target == target || (target == targetAll && !r.optional)) {
			wanted[r.name], found = true, true
		}
	}
	if !found {
		return fmt.Errorf("--target %s: no such module: give all, or some of %s", target, strings.Join(targetNames(rows), ", "))
	}
	return nil
}

func targetNames(rows []row) []string {
	var names []string
	for _, r := range rows {
		if r.target != "" && !slices.Contains(names, r.target) {
			names = append(names, r.target)
		}
	}
	return names
}

// describeTable is the list of modules in sluice run --help.
func describeTable() string {
	var b strings.Builder
	b.WriteString("Modules:\n")
	for _, r := range table(config.Default()) {
		if r.target == "" {
			continue
		}
		note := ""
		if r.optional {
			note = " (not in all)"
		}
		fmt.Fprintf(&b, "  %-13s %s%s\n", r.target, r.about, note)
	}
	return b.String()
}

// metricsOf labels a module's metrics with its name: two gateways, or two
// consumers of one topic, may live in a process.
func (c *clients) metricsOf(module string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"module": module}, c.registry)
}

func newPostgres(c *clients, _ string) (service.Runner, error) { return c.Schema(), nil }

func newControlplane(c *clients, name string) (service.Runner, error) {
	pool, err := c.Pool()
	if err != nil {
		return nil, err
	}
	usage, err := c.Usage()
	if err != nil {
		return nil, err
	}
	counters, err := c.Redis()
	if err != nil {
		return nil, err
	}
	sender, err := c.Webhooks()
	if err != nil {
		return nil, err
	}
	links := controlplane.Portal{URL: c.cfg.Portal.URL}
	if c.cfg.Portal.KeysFile != "" {
		tickets, err := c.Tickets()
		if err != nil {
			return nil, err
		}
		links.Keys = tickets.Keys()
	}
	room, err := controlplane.New(c.cfg.Controlplane, controlplane.Deps{
		Pool: pool, Usage: usage, Redis: counters, KeyPrefix: c.cfg.Redis.Counters.KeyPrefix, Portal: links, Webhooks: sender,
		Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	return after{c.Schema(), room}, err
}

func newTickets(c *clients, _ string) (service.Runner, error) { return c.Tickets() }

func newPortal(c *clients, name string) (service.Runner, error) {
	tickets, err := c.Tickets()
	if err != nil {
		return nil, err
	}
	return portal.New(c.cfg.Portal, portal.Deps{
		Keys: tickets.Keys(), Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
}

func newRelay(c *clients, name string) (service.Runner, error) {
	room, err := relay.New(c.cfg.Relay, relay.Deps{
		DatabaseURL: c.cfg.Postgres.URL, Stream: c.cfg.Kafka,
		Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	return after{c.Schema(), room}, err
}

func newGateway(cfg gateway.Config) func(*clients, string) (service.Runner, error) {
	return func(c *clients, name string) (service.Runner, error) {
		client, err := c.Redis()
		if err != nil {
			return nil, err
		}
		answers, err := c.Cache()
		if err != nil {
			return nil, err
		}
		cfg.Store.KeyPrefix, cfg.Cache.KeyPrefix = c.cfg.Redis.Counters.KeyPrefix, c.cfg.Redis.Cache.KeyPrefix
		return gateway.New(cfg, gateway.Deps{
			Redis: client, Cache: answers, Stream: c.cfg.Kafka, Log: c.log.With("module", name), Registerer: c.metricsOf(name),
		})
	}
}

// furtherGateway is the first one's configuration with a name, an address and
// a spool of its own: two may not share a spool.
func furtherGateway(cfg gateway.Config, listen string, n int) gateway.Config {
	suffix := "-" + strconv.Itoa(n)
	if cfg.ID == "" {
		// The host's name, which the first one takes, must not serve twice. A host
		// without one is refused by the first.
		cfg.ID, _ = os.Hostname()
	}
	cfg.ID += suffix
	cfg.Listen = listen
	cfg.Spool.Dir = filepath.Clean(cfg.Spool.Dir) + suffix
	return cfg
}

func newKeeper(c *clients, name string) (service.Runner, error) {
	pool, err := c.Pool()
	if err != nil {
		return nil, err
	}
	client, err := c.Redis()
	if err != nil {
		return nil, err
	}
	room, err := keeper.New(c.cfg.Keeper, keeper.Deps{
		Pool: pool, Stream: c.cfg.Kafka, Redis: client, KeyPrefix: c.cfg.Redis.Counters.KeyPrefix, Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	return after{c.Schema(), room}, err
}

func newBilling(c *clients, name string) (service.Runner, error) {
	pool, err := c.Pool()
	if err != nil {
		return nil, err
	}
	room, err := billing.New(c.cfg.Billing, billing.Deps{
		Pool: pool, Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	return after{c.Schema(), room}, err
}

func newIndexer(c *clients, name string) (service.Runner, error) {
	usage, err := c.Usage()
	if err != nil {
		return nil, err
	}
	room, err := indexer.New(c.cfg.Indexer, indexer.Deps{
		Store: usage, Stream: c.cfg.Kafka, Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	if c.cfg.Usage.Store == config.UsagePostgres {
		return after{c.Schema(), room}, err
	}
	return room, err
}

func newWebhooks(c *clients, name string) (service.Runner, error) {
	pool, err := c.Pool()
	if err != nil {
		return nil, err
	}
	sender, err := c.Webhooks()
	if err != nil {
		return nil, err
	}
	room, err := webhooks.New(c.cfg.Webhooks, webhooks.Deps{
		Pool: pool, Sender: sender, Stream: c.cfg.Kafka, Log: c.log.With("module", name), Registerer: c.metricsOf(name),
	})
	return after{c.Schema(), room}, err
}

func newDemo(c *clients, name string) (service.Runner, error) {
	return demo.New(c.cfg.Demo, demo.Deps{Log: c.log.With("module", name)})
}
