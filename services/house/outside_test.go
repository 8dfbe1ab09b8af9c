package house_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program outside the workspace can use a lib with the replace lines that
// the README gives, and drags in no service.
func TestOutsideProgramUsesLibs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "main.go", `package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

func main() {
	model := limit.NewModel(time.Now)
	d, err := model.Decide(context.Background(), []limit.Counter{{Key: "k", Algorithm: limit.GCRA, Limit: 1, Burst: 1, Window: time.Minute, Cost: 1}})
	fmt.Println(d.Allowed, err)
}
`)
	write(t, dir, "go.mod", "module outside\n\ngo 1.26\n\nrequire "+module+"libs v0.0.0\n\nreplace (\n\t"+
		module+"libs => "+abs+"/libs\n\t"+module+"schemas => "+abs+"/schemas\n)\n")
	write(t, dir, "go.sum", read(t, "libs/go.sum"))
	run := exec.Command("go", "run", "-mod=mod", ".")
	run.Dir = dir
	run.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "true <nil>") {
		t.Fatalf("go run: %v\n%s", err, out)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
