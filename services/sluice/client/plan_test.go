package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/sluice/client/cache"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func unlimitedRule(id string, priority int) rules.Rule {
	return ruleKind.normalize(rules.Rule{
		ID: id, Subject: rules.Subject{Kind: "tenant", Value: "*"}, Metric: "m", Unlimited: true, Priority: priority,
	})
}

func TestPlanComparesByContent(t *testing.T) {
	t.Parallel()
	have := []rules.Rule{unlimitedRule("changed", 1), unlimitedRule("gone", 0), unlimitedRule("same", 2)}
	for i := range have {
		have[i].Version = int64(10 + i)
	}
	have[2].Mode = "" // as an older server might have stored it
	want := map[string]wanted[rules.Rule]{
		"changed": {where: "f", value: unlimitedRule("changed", 0)}, "same": {where: "f", value: unlimitedRule("same", 2), version: 3}, "added": {where: "f", value: unlimitedRule("added", 0), version: 7},
	}
	for _, prune := range []bool{false, true} {
		steps, err := ruleKind.plan(want, have, prune)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range steps {
			got = append(got, string(s.action)+s.key+s.etag)
		}
		expected := `+added ~changed"10" =same"12"`
		if prune {
			expected += ` -gone"11"`
		}
		if strings.Join(got, " ") != expected {
			t.Errorf("prune %v: %q, want %s", prune, got, expected)
		}
		if f := steps[1].fields; len(f) != 1 || f[0].String() != "priority: 1 → (absent)" {
			t.Errorf("fields %v", f)
		}
	}
}

// What was got before another's change is not written over it; what differs in
// nothing, or was got as it is, is no trouble.
func TestPlanRefusesWhatWasGotBeforeAnotherChange(t *testing.T) {
	t.Parallel()
	have := unlimitedRule("r", 1)
	have.Version = 71
	for version, refused := range map[int64]bool{0: false, 70: true, 71: false, 72: true} {
		steps, err := ruleKind.plan(map[string]wanted[rules.Rule]{"r": {"f: document 2 (line 9)", unlimitedRule("r", 2), version}}, []rules.Rule{have}, true)
		if (err != nil) != refused {
			t.Errorf("version %d: %v, %v", version, steps, err)
		}
		if refused {
			holds(t, err.Error(), "nothing was changed", fmt.Sprintf(`f: document 2 (line 9): version: rule "r" is at version 71, and was changed since version %d`, version),
				"get it again, or leave version out to write over it")
		}
	}
}

func TestDiffKeepsLargeNumbersApart(t *testing.T) {
	t.Parallel()
	a, b := unlimitedRule("a", 0), unlimitedRule("a", 0)
	a.Cost, b.Cost = new(int64(9007199254740992)), new(int64(9007199254740993))
	changes, err := diff(a, b)
	if err != nil || len(changes) != 1 || changes[0].String() != "cost: 9007199254740992 → 9007199254740993" {
		t.Fatalf("%v, %v", changes, err)
	}
}

func TestHelpHasExamplesAndNoToken(t *testing.T) {
	t.Setenv(rest.EnvToken, "hunter2")
	for _, top := range Commands() {
		for _, cmd := range append(top.Commands(), top) {
			if cmd.HasSubCommands() {
				continue
			}
			var out bytes.Buffer
			cmd.SetOut(&out)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); !strings.Contains(text, "Examples:\n  sluice ") && !strings.Contains(text, "Examples:\n  cat ") || strings.Contains(text, "hunter2") {
				t.Errorf("%s --help says\n%s", cmd.CommandPath(), text)
			}
		}
	}
}

func TestConnectionMistakesAreNamed(t *testing.T) {
	t.Setenv(rest.EnvToken, "")
	t.Setenv(rest.EnvURL, "")
	for args, says := range map[string]string{
		"rules list":                                                 rest.EnvToken,
		"rules list --token t --url ftp://x":                         "--url must be",
		"rules list --token t --url http://127.0.0.1:1":              "call control plane",
		"rules list --token t --output xml":                          "--output must be",
		"rules apply --token t":                                      "give --file; usage: sluice rules apply -f FILE",
		"usage --limit 0 --token t":                                  "--limit must be",
		"decision --token t":                                         "give a decision ID",
		"decision a b --token t":                                     "give a decision ID, not 2 arguments",
		"rules get --token t":                                        "give the ID of a rule",
		"overrides delete --token t":                                 "give the ID of an override, or several",
		"overrides set tenant --metric m --token t":                  "give KIND and VALUE",
		"keys revoke --token t":                                      "give the ID of a key, or several",
		"usage --decision ALLOWED --token t":                         `--decision must be one of ALLOW, DENY, SHADOW, COMMIT, RELEASE, EXPIRE, not "ALLOWED"`,
		"usage --from yesterday --token t":                           "--from must be RFC 3339, such as 2026-07-23T00:00:00Z",
		"usage --to 2026-07-23 --token t":                            "--to must be RFC 3339",
		"rules apply rules.yaml":                                     "files are given with -f: did you mean -f rules.yaml?",
		"rules aply":                                                 `unknown command "aply" for sluice rules: did you mean apply?`,
		"rules aply -f x.yaml --prune":                               "did you mean apply?",
		"services lisst":                                             "did you mean list?",
		"keys revok k":                                               "did you mean revoke?",
		"overrides sett tenant acme":                                 "did you mean set or get?",
		"rules frobnicate":                                           "sluice rules --help lists them",
		"rules --frob":                                               "unknown flag",
		"explain --token t":                                          "give --path PATH or --service NAME",
		"explain --path /x":                                          rest.EnvToken,
		"explain --path /x --token t --admin-url ftp://x":            "--admin-url must be",
		"explain --path /x --token t --admin-url http://127.0.0.1:1": "call gateway",
		"overrides set tenant acme --token t":                        "give --metric; usage: sluice overrides set KIND VALUE",
		"overrides set tenant * --metric m --limit 1 --token t":      "must be exact",
		"overrides set tenant a --metric m --token t":                "limit: must be given",
		"overrides set tenant a --metric m --unlimited --until soon --token t": "--until must be",
		"explain /demo/hello":                                           "did you mean --path /demo/hello?",
		"explain hello":                                                 `no argument such as "hello"`,
		"explain --path /x --service s":                                 "one of the two",
		"explain --path hello":                                          `--path must begin with a slash, as in /demo/hello, not "hello"`,
		"explain --path /x --key slk_abc":                               "--key must be the key's id (key_…",
		"cache purge shop --path x":                                     `--path must begin with a slash, as in /shop/, not "x"`,
		"cache purge shop --prefix x":                                   `--prefix must begin with a slash`,
		"overrides set --tenant acme":                                   "give KIND VALUE and not --tenant, as in tenant acme; usage: sluice overrides set KIND VALUE",
		"overrides set --metric m --tenent a":                           "unknown flag: --tenent",
		"overrides set tenant --metric m":                               "VALUE is missing: give KIND and VALUE",
		"topups create acme --amount 1":                                 "METRIC is missing: give the ID of a customer and a metric, such as acme reports; usage: sluice topups create CUSTOMER METRIC",
		"topups create acme m":                                          "give --amount; usage: sluice topups create",
		"reservations release acme":                                     "ID is missing: give a tenant and",
		"wallets list":                                                  "give the ID of a customer",
		"invoices get":                                                  "give the ID of an invoice",
		"plans move pro":                                                "give --from and --to; usage: sluice plans move",
		"rules list hello":                                              `sluice rules list takes no argument such as "hello"`,
		"subscriptions create --customer a --plan p --version 0":        "--version must be 1 or more, not 0; leave it out for the newest",
		"subscriptions change s --version -1":                           "--version must be 1 or more",
		"keys create":                                                   "give --tenant; usage: sluice keys create --tenant TENANT",
		"overrides set tenant a --metric m --limit abc":                 `--limit must be a whole number, not "abc"`,
		"overrides set tenant a --metric m --limit 1.5":                 `--limit must be a whole number, not "1.5"`,
		"overrides set tenant a --metric m --limit 9223372036854775808": `--limit must be a whole number of at most 64 bits, not "9223372036854775808"`,
		"overrides set tenant a --metrc m":                              "unknown flag: --metrc: did you mean --metric?",
		"rules apply -f x --dry-run=maybe":                              `--dry-run must be true or false, or be given without a value, not "maybe"`,
		"cache rehearse --route x --rate 1 --since never":               `--since must be a duration such as 90s, 30m or 1h, not "never"`,
	} {
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(append(Commands(), cache.Command())...)
		root.SetArgs(strings.Fields(args))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("sluice %s says %v, want …%s…", args, err, says)
		}
	}
}
