package house_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A reader who opens any package first finds what it is, in doc.go.
func TestEveryPackageHasADoc(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, src := range sources(t) {
		if _, seen := documented[src.dir()]; !seen {
			documented[src.dir()] = false
		}
		if src.base() == "doc.go" && src.file.Doc != nil && len(src.file.Doc.Text()) > 60 {
			documented[src.dir()] = true
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no doc.go that says what the package is", dir)
		}
	}
}

// Rooms have the same furniture, so that one who knows one room knows where
// to look in all.
func TestEveryRoomHasTheSameFurniture(t *testing.T) {
	t.Parallel()
	headings := []string{"Purpose", "Data in", "Data out", "State", "Config", "Metrics", "Failure modes"}
	for _, room := range rooms(t) {
		text, err := os.ReadFile(filepath.Join(root, "services", room, "README.md"))
		if err != nil {
			t.Errorf("room %s: %v", room, err)
			continue
		}
		var found []string
		for line := range strings.Lines(string(text)) {
			if h, ok := strings.CutPrefix(line, "## "); ok {
				found = append(found, strings.TrimSpace(h))
			}
		}
		if !slices.Equal(found, headings) {
			t.Errorf("room %s: README headings are %q, want %q", room, found, headings)
		}
	}
}

// Long files and functions hide ideas.
func TestSizes(t *testing.T) {
	t.Parallel()
	const longestFile, longestFunc = 600, 100
	for _, src := range sources(t) {
		if src.lines > longestFile {
			t.Errorf("%s has %d lines; split it (at most %d)", src.path, src.lines, longestFile)
		}
		for _, decl := range src.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || src.test() {
				continue
			}
			from, to := src.fset.Position(fn.Pos()).Line, src.fset.Position(fn.End()).Line
			if to-from > longestFunc {
				t.Errorf("%s: %s has %d lines; split it (at most %d)", src.path, fn.Name.Name, to-from, longestFunc)
			}
		}
	}
}

// A test that sleeps is slow where the machine is fast and wrong where it is
// slow; a test that skips looks like one that passed.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"time.Sleep": "wait for the condition instead",
		"t.Skip":     "a missing server is a failure",
		"t.Skipf":    "a missing server is a failure",
		"t.SkipNow":  "a missing server is a failure",
	}
	for _, src := range sources(t) {
		if !src.test() {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if why, bad := banned[x.Name+"."+sel.Sel.Name]; bad {
				t.Errorf("%s: %s.%s: %s", src.fset.Position(sel.Pos()), x.Name, sel.Sel.Name, why)
			}
			return true
		})
	}
}
