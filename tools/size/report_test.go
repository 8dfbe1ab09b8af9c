package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The figures of a small tree, counted by hand.
func TestMeasureSmallTree(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.work", "go 1.26\n\nuse (\n./libs\n./schemas\n./services\n)\n")
	for _, mod := range []string{"libs", "schemas", "services"} {
		write(mod+"/go.mod", "module "+module+mod+"\n\ngo 1.26\n")
	}
	write("schemas/redis/decide.lua", strings.Repeat("-- x\n", 401))
	write("schemas/schemas.go", "package schemas\n\nconst A = 1\n")
	write("libs/limit/redisstore/a.go", "package redisstore\n\nimport \""+module+"schemas\"\n\ntype T struct{}\n\nfunc (T) f() int { return g() }\n\nvar _ = schemas.A\n")
	write("libs/limit/redisstore/b.go", "package redisstore\n\nfunc g() int { return T{}.f() }\n")
	write("libs/limit/redisstore/a_test.go", "package redisstore\n\nvar x int\n")
	write("services/keeper/k.go", "package keeper\n\nimport _ \""+module+"libs/limit/redisstore\"\n")
	write("services/keeper/README.md", strings.Repeat("word ", 801))

	r, err := measure(root)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lines != 3+9+3+3 || r.Lua != 401 || len(r.Packages) != 3 {
		t.Errorf("%d lines of Go, %d of Lua, %d packages", r.Lines, r.Lua, len(r.Packages))
	}
	if got := strings.Join(r.Chain, " "); got != "services/keeper libs/limit/redisstore schemas" {
		t.Errorf("the longest chain is %s", got)
	}
	if p := r.Packages[0]; p.Path != "libs/limit/redisstore" || p.Files != 2 || p.Arrows != 2 || p.Back != 1 {
		t.Errorf("the first package is %+v, want two files that use each other", *p)
	}
	want := []Measure{
		{kindBack, "libs/limit/redisstore", 50, 14},
		{kindArea, "decide.lua", 401, 400},
		{kindWords, "services/keeper/README.md", 801, 800},
	}
	if len(r.Over) != len(want) {
		t.Fatalf("over are %v, want %v", r.Over, want)
	}
	for i := range want {
		if r.Over[i] != want[i] {
			t.Errorf("over is %v, want %v", r.Over[i], want[i])
		}
	}
	if err := run([]string{"-root", root, "-check"}, new(strings.Builder)); err == nil {
		t.Error("size -check ends well though three measures are over")
	}
}
