package sluice

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/sluice/config"
)

// leftovers are folders that outlive single tests: the binary of the tests of
// sluice dev.
var leftovers []string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range leftovers {
			_ = os.RemoveAll(dir) // the temporary folder is emptied by its owner one day
		}
		os.Exit(code)
	}))
}

func names(modules []service.Module) []string {
	var all []string
	for _, m := range modules {
		all = append(all, m.Name)
	}
	return all
}

func TestTargetsAreRowsAndWhatTheyNeed(t *testing.T) {
	t.Parallel()
	inPostgres := config.Default()
	inPostgres.Usage.Store = config.UsagePostgres
	threeGateways := config.Default()
	threeGateways.Gateway.More = []string{":8081", ":8082"}
	cases := []struct {
		name    string
		cfg     config.Config
		targets []string
		want    []string
	}{
		{"all", config.Default(), []string{"all"}, []string{"postgres", "controlplane", "relay", "gateway", "keeper", "billing", "indexer", "webhooks"}},
		{"all and an optional one", config.Default(), []string{"all", "demo"}, []string{"postgres", "controlplane", "relay", "gateway", "keeper", "billing", "indexer", "webhooks", "demo"}},
		{"the gateway needs no Postgres", inPostgres, []string{"gateway"}, []string{"gateway"}},
		{"more gateways", threeGateways, []string{"gateway"}, []string{"gateway", "gateway-2", "gateway-3"}},
		{"relay", config.Default(), []string{"relay"}, []string{"postgres", "relay"}},
		{"indexer into Elasticsearch", config.Default(), []string{"indexer"}, []string{"indexer"}},
		{"indexer into Postgres", inPostgres, []string{"indexer"}, []string{"postgres", "indexer"}},
		{"twice, with spaces", config.Default(), []string{"demo", " gateway", "demo"}, []string{"gateway", "demo"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			modules, err := choose(table(c.cfg), c.targets, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(modules); !slices.Equal(got, c.want) {
				t.Errorf("modules %v, want %v", got, c.want)
			}
		})
	}
}

func TestUnknownTargetsAreNamed(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"gatway":   "--target gatway: no such module: give all, or some of controlplane, relay, gateway, keeper, billing, indexer, webhooks, portal, demo",
		"postgres": "--target postgres: no such module",
		"":         "no such module",
	} {
		if _, err := choose(table(config.Default()), []string{target}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", target, err, want)
		}
	}
	if _, err := choose(table(config.Default()), nil, nil); err == nil {
		t.Error("no target at all is no error")
	}
}

// Two gateways that shared a spool would corrupt it, two with one name could
// not be told apart in usage events.
func TestFurtherGatewaysHaveTheirOwn(t *testing.T) {
	t.Parallel()
	first := config.Default().Gateway.Config
	first.ID, first.Spool.Dir = "gw", filepath.Join("x", "spool")+"/"
	second := furtherGateway(first, ":8081", 2)
	if second.ID != "gw-2" || second.Listen != ":8081" || second.Spool.Dir != filepath.Join("x", "spool-2") {
		t.Errorf("id %s, listen %s, spool %s", second.ID, second.Listen, second.Spool.Dir)
	}
	first.ID = ""
	if named := furtherGateway(first, ":8081", 2); named.ID == "" {
		t.Error("a gateway named after the host gives the second the same name")
	}
}

// Every module of the table is constructed with no server there at all.
func TestAllModulesAreConstructedWithoutServers(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Admin.Listen = "127.0.0.1:0"
	cfg.Gateway.Spool.Dir = t.TempDir()
	cfg.Gateway.More = []string{"127.0.0.1:0"}
	p, err := newProcess(cfg, slog.New(slog.DiscardHandler), []string{"all", "demo"})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(p.group.Status()); got != 10 {
		t.Errorf("%d modules, want 10", got)
	}
	// Nothing was started: giving back the port and the clients is all.
	if err := p.discard(); err != nil {
		t.Error(err)
	}
}
