package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderBelongsToOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "data")
	first, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenFolder(path)
	if want := fmt.Sprintf("process %d", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("second: %v, want an error with %q and --data", err, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFolder(path)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
