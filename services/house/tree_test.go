package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/sluice-platform/sluice/"
)

// source is one Go file of ours; its path is relative to the root.
type source struct {
	path    string
	imports []string
	file    *ast.File
	fset    *token.FileSet
	lines   int
}

func (s source) dir() string  { return filepath.ToSlash(filepath.Dir(s.path)) }
func (s source) test() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s source) base() string { return filepath.Base(s.path) }

// sources parses every Go file of the modules of go.work.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, mod := range []string{"schemas", "libs", "services", "tools/rehearsal"} {
		err := filepath.WalkDir(filepath.Join(root, mod), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if d.IsDir() || filepath.Ext(path) != ".go" {
				return nil
			}
			src, err := parse(path)
			all = append(all, src)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 50 {
		t.Fatalf("found only %d Go files below %s: the tests look in the wrong place", len(all), root)
	}
	return all
}

func parse(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return source{}, err
	}
	src := source{path: filepath.ToSlash(rel), file: file, fset: fset, lines: strings.Count(string(text), "\n")}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		src.imports = append(src.imports, name)
	}
	return src, nil
}

// rooms are the folders of services/ that hold a part of the data path.
func rooms(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "services"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains([]string{"cmd", "house", "e2e"}, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
