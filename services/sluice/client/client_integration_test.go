//go:build integration

package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/cache"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/usagestore/pgstore"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/controlplane"
)

const token, readOnlyToken = "test-admin", "test-readonly"

// server is a control plane on a port, over a database and a usage store of its own.
type server struct {
	url   string
	usage *pgstore.Store
}

func newServer(t *testing.T) server {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "keeper", "usage", "webhooks", "billing"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cfg := controlplane.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	for token, role := range map[string]string{token: controlplane.RoleAdmin, readOnlyToken: controlplane.RoleReadOnly} {
		sum := sha256.Sum256([]byte(token))
		cfg.Tokens = append(cfg.Tokens, controlplane.Token{Name: role, Role: role, SHA256: hex.EncodeToString(sum[:])})
	}
	store := pgstore.New(pool)
	hooks := webhook.DefaultConfig()
	hooks.Keys = []service.Secret{service.Secret("k1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))}
	hooks.Allow, hooks.AllowHTTP = []string{"127.0.0.0/8"}, true
	sender, err := webhook.New(hooks, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	s, err := controlplane.New(cfg, controlplane.Deps{Pool: pool, Usage: store, Webhooks: sender})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	servertest.Eventually(t, 10*time.Second, "the control plane to listen", func() bool { return s.Ready() == nil })
	return server{"http://" + s.Addr().String(), store}
}

// sluice runs a client command as a shell would, and returns standard output.
func (s server) sluice(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	out, _, err := s.run(t, stdin, args...)
	return out, err
}

func (s server) run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "sluice", SilenceErrors: true}
	root.AddCommand(append(Commands(), cache.Command())...)
	root.SetArgs(append([]string{args[0], "--url", s.url, "--token", token}, args[1:]...)) // a --token of args comes last, and holds
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func (s server) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := s.sluice(t, stdin, args...)
	if err != nil {
		t.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s server) refused(t *testing.T, says, stdin string, args ...string) {
	t.Helper()
	if out, err := s.sluice(t, stdin, args...); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("sluice %s: %v, want …%s…\n%s", strings.Join(args, " "), err, says, out)
	}
}

func TestApplyRules(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	apply := []string{"rules", "apply", "-f", "-"}

	holds(t, s.must(t, yamlRules, append(apply, "--dry-run")...), "+ create rule hello", "nothing was changed; it would be: 3 created")
	if out := s.must(t, "", "rules", "list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("a dry run made %s", out)
	}
	holds(t, s.must(t, yamlRules, apply...), "+ create rule free", "3 created, 0 updated, 0 unchanged, 0 deleted")
	holds(t, s.must(t, yamlRules, apply...), "= unchanged rule report", "0 created, 0 updated, 3 unchanged, 0 deleted")

	raised := strings.Replace(yamlRules, "limit: 30", "limit: 60", 1)
	holds(t, s.must(t, raised, apply...), "~ update rule hello\n    limit.burst: 30 → 60\n    limit.limit: 30 → 60\n", "0 created, 1 updated, 2 unchanged")

	first, _, _ := strings.Cut(raised, "---")
	holds(t, s.must(t, first, append(apply, "--dry-run", "--prune")...), "- delete rule free", "2 deleted")
	holds(t, s.must(t, first, apply...), "1 unchanged, 0 deleted")
	holds(t, s.must(t, first, append(apply, "--prune")...), "- delete rule report", "2 deleted")

	s.refused(t, "--allow-empty", "# nothing\n", append(apply, "--prune")...)
	holds(t, s.must(t, "", "rules", "list"), "hello", "gcra 60/1m")
	holds(t, s.must(t, "# nothing\n", append(apply, "--prune", "--allow-empty")...), "1 deleted")
	s.refused(t, "standard input: document 1 (line 1): idd: is not a field", "idd: x\n", apply...)
}

func TestWhatGetPrintsCanBeApplied(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	odd := strings.Replace(yamlRules, "id: hello", `id: "{a}/b: 100% ä"`, 1)
	s.must(t, odd, "rules", "apply", "-f", "-")
	path := writeFile(t, t.TempDir(), "got.json", s.must(t, "", "rules", "get", "{a}/b: 100% ä"))
	holds(t, s.must(t, "", "rules", "apply", "-f", path), "= unchanged rule {a}/b: 100% ä", "1 unchanged")
	s.must(t, "", "rules", "delete", "{a}/b: 100% ä", "free")
	s.refused(t, "404", "", "rules", "get", "free")
	s.refused(t, "404", "", "rules", "delete", "free")
	holds(t, s.must(t, "", "rules", "list", "--tenant", "acme"), "report", "quota 9007199254740991/month", "off")
}

// TestApplyOverwritesNoOtherChange writes between the comparison and the write.
func TestApplyOverwritesNoOtherChange(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, yamlRules, "rules", "apply", "-f", "-")
	c := &rest.Connection{URL: s.url, Token: token}
	have, err := rest.All[rules.Rule](t.Context(), c, "/v1/rules", url.Values{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]wanted[rules.Rule]{"hello": {where: "f.yaml: document 1 (line 1)", value: unlimitedRule("hello", 7)}}
	steps, err := ruleKind.plan(want, have, true)
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, strings.Replace(yamlRules, "limit: 30", "limit: 31", 1), "rules", "apply", "-f", "-")
	var out bytes.Buffer
	err = ruleKind.execute(t.Context(), c, steps, false, &out)
	if err == nil || !strings.Contains(err.Error(), "changed by someone else meanwhile") {
		t.Errorf("says %v", err)
	}
	holds(t, out.String(), "! kept rule free, since a write before failed", "0 created, 0 updated, 0 unchanged, 0 deleted")
	holds(t, s.must(t, "", "rules", "list"), "gcra 31/1m", "free", "report")
}

func TestApplyServices(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	demo := "name: demo\nprefix: /demo/\nupstreams: [{url: 'http://127.0.0.1:9000'}]\nendpoints: [{pattern: GET /demo/hello}]\n"
	apply := []string{"services", "apply", "-f", "-"}
	holds(t, s.must(t, demo, apply...), "+ create service demo", "1 created")
	holds(t, s.must(t, demo, apply...), "1 unchanged")
	holds(t, s.must(t, demo+"requireKey: true\n", apply...), "requireKey: (absent) → true")
	holds(t, s.must(t, "", "services", "list"), "/demo/", "http://127.0.0.1:9000")
	// The server's own refusal names document and field, and keeps the rest from being pruned.
	twin := strings.Replace(demo, "name: demo", "name: twin", 1)
	s.refused(t, "prefix: must be a prefix that no other service has", twin, append(apply, "--prune")...)
	holds(t, s.must(t, "", "services", "get", "demo"), `"requireKey": true`)
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	set := []string{"overrides", "set", "user", "acme/u 1", "--metric", "requests", "--window", "60s"}
	id := "user:acme/u%201:requests:1m"
	holds(t, s.must(t, "", append(set, "--limit", "300", "--until", "2030-01-01T00:00:00Z", "--reason", "launch")...), "+ create override "+id)
	holds(t, s.must(t, "", append(set, "--limit", "400")...), "~ update override "+id)
	holds(t, s.must(t, "", "overrides", "list", "--tenant", "acme"), id, "user=acme/u 1", "1m", "400", "never")
	holds(t, s.must(t, "", "overrides", "get", id), `"limit": 400`)
	holds(t, s.must(t, "", "overrides", "delete", id), "- delete override "+id)
	s.refused(t, "404", "", "overrides", "get", id)
	holds(t, s.must(t, "subject: {kind: tenant, value: acme}\nmetric: m\nunlimited: true\n", "overrides", "apply", "-f", "-"), "+ create override tenant:acme:m", "1 created")
}

// A change of calendar that waits is no difference to the file it came from.
func TestApplyLeavesWhatTheServerWrites(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	quota := "id: q\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit: {algorithm: quota, kind: renewing, limit: 5, period: month, rollover: 2}\n"
	apply := []string{"rules", "apply", "-f", "-"}
	s.must(t, quota, apply...)
	moved := strings.Replace(quota, "period: month", "period: month, timezone: Europe/Paris", 1)
	holds(t, s.must(t, moved, apply...), "limit.timezone: \"UTC\" → \"Europe/Paris\"", "1 updated")
	holds(t, s.must(t, "", "rules", "list"), "quota 5/month Europe/Paris")
	holds(t, s.must(t, "", "rules", "get", "q"), `"previous"`, `"since"`)
	holds(t, s.must(t, moved, apply...), "1 unchanged")
	holds(t, s.must(t, moved+"refundOn: [timeout, 5xx]\n", apply...), "refundOn", "1 updated")
	holds(t, s.must(t, moved+"refundOn: [5xx, timeout]\n", apply...), "1 unchanged")
	s.refused(t, "refundOn[0]: must be 5xx", quota+"refundOn: [6xx]\n", apply...)
}

func TestApplyWarnsOfScopesNobodyHas(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, "name: demo\nprefix: /demo/\nupstreams: [{url: 'http://127.0.0.1:9000'}]\nendpoints: [{pattern: 'GET /demo/{id}'}]\n",
		"services", "apply", "-f", "-")
	rest := "subject: {kind: tenant, value: '*'}\nmetric: m\nunlimited: true\n"
	file := "id: everywhere\n" + rest +
		"---\nid: known\nscope: {service: demo, endpoint: 'GET /demo/{id}'}\n" + rest +
		"---\nid: lost\nscope: {service: nosuch}\n" + rest +
		"---\nid: astray\nscope: {service: demo, endpoint: GET /demo/helo}\n" + rest
	want := "warning: rule astray names endpoint \"GET /demo/helo\", which service \"demo\" does not have in the catalog\n" +
		"warning: rule lost names service \"nosuch\", which the catalog does not have\n"
	out, warnings, err := s.run(t, file, "rules", "apply", "-f", "-")
	if err != nil || warnings != want || !strings.Contains(out, "4 created") {
		t.Errorf("%v\n%s\nwarns\n%s", err, out, warnings)
	}
	if _, warnings, _ := s.run(t, "id: everywhere\n"+rest, "rules", "apply", "-f", "-"); warnings != "" {
		t.Errorf("warns of a rule without scope: %s", warnings)
	}
}

// The rules of a plan will hold for nothing by the same mistake.
func TestApplyWarnsOfPlansForScopesNobodyHas(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := "id: pro\ncurrency: EUR\nrules:\n- {metric: m, unlimited: true}\n- {metric: n, unlimited: true, scope: {service: nosuch}}\n"
	out, warnings, err := s.run(t, file, "plans", "apply", "-f", "-")
	if err != nil || warnings != "warning: plan pro: rules[1] names service \"nosuch\", which the catalog does not have\n" || !strings.Contains(out, "1 created") {
		t.Errorf("%v\n%s\nwarns\n%s", err, out, warnings)
	}
}

// Of two rules in one place one never holds, which is taken and told.
func TestApplyWarnsOfRulesThatNeverHold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := ""
	for _, own := range []string{"id: a\nlimit: {algorithm: gcra, limit: 5, window: 1m}\n", "id: b\nlimit: {algorithm: gcra, limit: 50, window: 60s}\n", "id: c\nlimit: {algorithm: gcra, limit: 5, window: 1h}\n"} {
		file += "---\nsubject: {kind: tenant, value: '*'}\nmetric: m\n" + own
	}
	out, warnings, err := s.run(t, file, "rules", "apply", "-f", "-")
	if err != nil || warnings != "warning: rule b never holds: rule a has the same subject, scope, metric and horizon, and wins: smaller id\n" || !strings.Contains(out, "3 created") {
		t.Errorf("%v\n%s\nwarns\n%s", err, out, warnings)
	}
}

// An override that changes no rule is taken, and told of wherever it is seen.
func TestOverridesThatChangeNoRuleAreTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, "id: r\nsubject: {kind: user, value: 'acme/*'}\nmetric: m\nlimit: {algorithm: gcra, limit: 5, window: 1m}\n", "rules", "apply", "-f", "-")
	for args, warns := range map[string]string{
		"user acme/u1 --metric m":               "",
		"user acme/u1 --metric m --window 60s":  "",
		"user acme/u1 --metric m --window 1h":   "by a window of 1h",
		"user acme/u1 --metric m --period week": "by a period of week",
		"user globex/u1 --metric m":             "none counts metric m of this user by any window or period",
		"tenant acme --metric m":                "of this tenant",
		"user acme/u2 --metric other":           "none counts metric other",
	} {
		out, warnings, err := s.run(t, "", append([]string{"overrides", "set", "--limit", "3"}, strings.Fields(args)...)...)
		if err != nil || !strings.Contains(out, "create override") || !strings.Contains(warnings, warns) || (warnings == "") != (warns == "") {
			t.Errorf("%s: %v %s\nwarns %s", args, err, out, warnings)
		}
	}
	if _, warnings, err := s.run(t, "", "overrides", "list"); err != nil || strings.Count(warnings, "changes no rule") != 5 {
		t.Errorf("list: %v, warns\n%s", err, warnings)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var key struct{ ID, Key, Status string }
	if err := json.Unmarshal([]byte(s.must(t, "", "keys", "create", "--tenant", "acme", "--name", "ci")), &key); err != nil || !strings.HasPrefix(key.Key, "slk_") {
		t.Fatalf("created %+v, %v", key, err)
	}
	holds(t, s.must(t, "", "keys", "revoke", key.ID), "revoked key "+key.ID)
	out := s.must(t, "", "keys", "list", "--tenant", "acme")
	holds(t, out, key.ID, "revoked", "never")
	if strings.Contains(out, key.Key) {
		t.Error("list shows the key itself")
	}
	s.refused(t, "expiresAt: must be a time such as", "", "keys", "create", "--tenant", "acme", "--expires-at", "soon")
}

// A key may be for a tenant that is no customer, which is told where others are.
func TestKeysOfTenantsThatAreNoCustomersAreTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	warned := func(tenant string) bool {
		t.Helper()
		out, warnings, err := s.run(t, "", "keys", "create", "--tenant", tenant)
		if err != nil || !strings.Contains(out, `"key": "slk_`) {
			t.Fatalf("%s: %v %s", tenant, err, out)
		}
		return strings.Contains(warnings, "warning: no customer has the id "+strconv.Quote(tenant))
	}
	if warned("acme") {
		t.Error("doubts a tenant where nothing is sold")
	}
	s.must(t, "", "customers", "create", "acme b", "--name", "Acme")
	if warned("acme b") || !warned("acme") {
		t.Error("told of the customer, or not of the tenant that is none")
	}
	s.refused(t, "tenantId: must not begin or end with a space", "", "keys", "create", "--tenant", " acme")
}

func TestUsageAndDecision(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	at := time.Date(2026, 7, 23, 14, 32, 7, 412e6, time.UTC)
	var events []usage.Event
	for i, id := range []string{"d1", "d2", "d3"} {
		events = append(events, usage.Event{
			ID: id, TS: at.Add(time.Duration(i) * time.Second), TenantID: "acme", Service: "demo", Endpoint: "/demo/hello", Method: "GET",
			Decision: []string{"ALLOW", "DENY", "DENY"}[i], StatusCode: 200, Cost: 1, Gateway: "gw-1",
		})
	}
	events = append(events, usage.Event{
		ID: "d4", TS: time.Date(2026, 7, 23, 15, 0, 0, 0, time.UTC), TenantID: "globex", Service: "demo", Endpoint: "/demo/hello",
		Method: "GET", Decision: "SHADOW", StatusCode: 200, Cost: 1, Gateway: "gw-1",
	})
	results, err := s.usage.Put(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	out := s.must(t, "", "usage", "--tenant", "acme", "--decision", "DENY", "--limit", "1")
	if holds(t, out, "d3", "GET /demo/hello"); strings.Contains(out, "d2") || strings.Contains(out, "d1") {
		t.Errorf("more than the newest denial:\n%s", out)
	}
	out = s.must(t, "", "usage", "--from", "2026-07-23T14:32:08Z", "--to", "2026-07-23T14:32:09Z", "-o", "json")
	if holds(t, out, `"id": "d2"`); strings.Contains(out, "d3") || strings.Contains(out, "d1") {
		t.Errorf("more than that second:\n%s", out)
	}
	out = s.must(t, "", "usage", "--from", "2026-07-23T15:00:00Z")
	if !strings.Contains(out, "2026-07-23T15:00:00.000Z  SHADOW") { // as wide as the others
		t.Errorf("a whole second is written\n%s", out)
	}
	holds(t, s.must(t, "", "decision", "d1"), `"decision": "ALLOW"`)
	s.refused(t, "404", "", "decision", "d9")
	holds(t, s.must(t, "", "usage", "--decision", "deny"), "d2", "d3", "2026-07-23T14:32:08.412Z  DENY")
}
