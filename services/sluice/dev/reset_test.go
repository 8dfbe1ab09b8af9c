package dev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestResetDeletesOnlyWhatSluiceMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	for _, name := range []string{"postgres/data", "redis/appendonlydir", "kafka", "kafka.broken-1", "spool", "spool-2"} {
		if err := os.MkdirAll(filepath.Join(path, name), 0o755); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(name, "/")
		want = append(want, filepath.Join(path, first))
	}
	if err := os.WriteFile(filepath.Join(path, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	deleted, err := f.Reset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(deleted, want) {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
	left, err := os.ReadDir(path)
	if err != nil || len(left) != 2 || left[0].Name() != "lock" || left[1].Name() != "thesis.tex" {
		t.Errorf("left: %v, %v", left, err)
	}
	if deleted, err := f.Reset(t.Context()); err != nil || len(deleted) != 0 {
		t.Errorf("again: deleted %v, %v", deleted, err)
	}
}
