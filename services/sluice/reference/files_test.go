package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../../../docs/reference"

func TestDocumentsAreWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	files, err := Files() // an error names a configuration field without a doc tag
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(have, want) {
			t.Errorf("docs/reference/%s differs from the code: run make generate", name)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ours := files[e.Name()]; !ours {
			t.Errorf("docs/reference/%s is not generated: it belongs elsewhere", e.Name())
		}
	}
}

func TestDocumentsNameWhatUsersLookFor(t *testing.T) {
	t.Parallel()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"config.md":  {"`gateway.spool.sizeBytes`", "`SLUICE_POSTGRES_URL`", "`controlplane.tokens[].sha256`", "`SLUICE_TEST_…`"},
		"metrics.md": {"| `ratelimit_decisions_total` | counter | `outcome` |", "| `ratelimit_decision_latency_seconds` | histogram |", "| `sluice_table_records` | gauge | `topic` |", "`sluice_spool_dropped_total` | counter |"},
		"cli.md":     {"## sluice run", "## sluice rules apply", "--port-offset"},
	} {
		for _, want := range wants {
			if !strings.Contains(string(files[name]), want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
}
