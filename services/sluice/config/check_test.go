package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a module would refuse when it is constructed does not load: to print a
// configuration is a way to check it.
func TestWhatAModuleRefusesDoesNotLoad(t *testing.T) {
	t.Parallel()
	issuer := func(url string) string {
		return `gateway.identity.jwt.issuers=[{issuer: a, audiences: [b], jwksUrl: "` + url + `"}]`
	}
	for want, sets := range map[string][]string{
		"gateway.drainTimeout":                     {"gateway.drainTimeout=-5s"},
		"gateway.spool.sizeBytes":                  {"gateway.spool.sizeBytes=1"},
		"gateway.identity.trustedCidrs":            {"gateway.identity.trustedCidrs=10.0.0.0"},
		"gateway.explain.tokens[0]":                {"gateway.explain.tokens=[{name: a, sha256: b}]"},
		"gateway.identity.jwt: issuers[0].jwksUrl": {issuer("https://u:hunter2@h/keys")},
		"controlplane.requestTimeout":              {"controlplane.requestTimeout=0s"},
		"controlplane.tokens[0]: role":             {"controlplane.tokens=[{name: a, role: b}]"},
		"relay.slot":                               {"relay.slot=A B"},
		"relay.mirrorEvery":                        {"relay.mirrorEvery=-1s"},
		"keeper.checkpointEvery":                   {"keeper.checkpointEvery=0s"},
		"indexer.retentionDays":                    {"indexer.retentionDays=0"},
		"elasticsearch.url carries credentials":    {"elasticsearch.url=http://u:hunter2@h"},
		"elasticsearch.indexPrefix":                {"elasticsearch.indexPrefix=UPPER"},
		"postgres.url: not a connection URL":       {"postgres.url=postgres://u:hunter2@db/x?sslmode=perhaps"},
		"redis.counters.keyPrefix":                 {"redis.counters.keyPrefix={a}"},
		"gateway.upstream.dialTimeout must be":     {"gateway.upstream.dialTimeout=0s", "keeper.group="},
	} {
		_, err := Load(Options{Sets: sets})
		if err == nil || !strings.Contains(err.Error(), "\n"+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want one that begins with %s", sets, err, want)
		}
		if len(sets) > 1 && err != nil && !strings.Contains(err.Error(), "\nkeeper.group") {
			t.Errorf("%q: not all of them: %v", sets, err)
		}
	}
}

// A file is taken whole: what the YAML library passes over is an error.
func TestFilesAreTakenWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"log: {level: debug}\n---\nlog: {level: error}\n": "line 2 begins a second YAML document",
		"---\nlog: {level: debug}\n...\n---\n":            "second YAML document",
		"---\n---\nlog: {level: debug}\n":                 "second YAML document",
		"log: {level: debug}\n--- [\n":                    "",
		"\xff\xfe":                                        "not UTF-8",
		"\xff\xfel\x00:\x00":                              "not UTF-8",
		"log: {level: \"\xe9\"}":                          "not UTF-8",
		"\x00":                                            "",
		"- a\n":                                           "",
		"a":                                               "",
	} {
		name := filepath.Join(t.TempDir(), "odd.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Load(Options{File: name}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error that names the file and says %s", text, l, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\nlog: {level: info}\n...\n", "\ufefflog: {level: info}\n"} {
		load(t, Options{File: yamlFile(t, text)})
	}
}
