package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/sluice-platform/sluice/"

// file is a Go file that is no test, or a Lua script.
type file struct {
	path  string // below the root
	lines int
}

func (f file) dir() string { return path.Dir(f.path) }
func (f file) lua() bool   { return strings.HasSuffix(f.path, ".lua") }

func walk(root string) ([]file, error) {
	var all []file
	for _, mod := range []string{"schemas", "libs", "services"} {
		err := filepath.WalkDir(filepath.Join(root, mod), func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || strings.HasSuffix(name, "_test.go"):
				return nil
			case filepath.Ext(name) != ".go" && filepath.Ext(name) != ".lua":
				return nil
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, name)
			all = append(all, file{filepath.ToSlash(rel), bytes.Count(text, []byte("\n"))})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// loaded is a package with its types.
type loaded struct {
	*packages.Package
	path string // below the root
}

// load reads packages of the workspace with their types, without tests.
func load(root, pattern string) ([]loaded, error) {
	found, err := packages.Load(&packages.Config{
		Dir: root,
		// The tools are a module outside the workspace; what they look at is in it.
		Env: append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOWORK=") }), "GOWORK="),
		Mode: packages.NeedName | packages.NeedImports | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, pattern)
	if err != nil {
		return nil, err
	}
	var all []loaded
	for _, p := range found {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, e)
		}
		all = append(all, loaded{p, strings.TrimPrefix(p.PkgPath, module)})
	}
	return all, nil
}

// longestChain is the longest chain of imports among the packages; of several
// it is the first by name.
func longestChain(all []loaded) []string {
	imports := map[string][]string{}
	for _, p := range all {
		for name := range p.Imports {
			if ours, ok := strings.CutPrefix(name, module); ok {
				imports[p.path] = append(imports[p.path], ours)
			}
		}
		slices.Sort(imports[p.path])
	}
	known := map[string][]string{}
	var from func(string) []string
	from = func(p string) []string {
		if chain, ok := known[p]; ok {
			return chain
		}
		var below []string
		for _, next := range imports[p] {
			if chain := from(next); len(chain) > len(below) {
				below = chain
			}
		}
		known[p] = append([]string{p}, below...)
		return known[p]
	}
	var longest []string
	for _, p := range all {
		chain := from(p.path)
		if len(chain) > len(longest) || len(chain) == len(longest) && slices.Compare(chain, longest) < 0 {
			longest = chain
		}
	}
	return longest
}

// arrowsOf finds which files of the package use which others.
func arrowsOf(p loaded) *graph {
	g := &graph{}
	index := map[string]int{}
	for _, f := range p.Syntax {
		name := p.Fset.Position(f.Package).Filename
		index[name] = len(g.names)
		g.names = append(g.names, filepath.Base(name))
	}
	g.uses = make([]map[int]string, len(g.names))
	for i, f := range p.Syntax {
		g.uses[i] = map[int]string{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if obj := p.TypesInfo.Uses[id]; declared(obj, p.Types) {
				at, ok := index[p.Fset.Position(obj.Pos()).Filename]
				if _, seen := g.uses[i][at]; ok && at != i && !seen {
					g.uses[i][at] = fmt.Sprintf("%s (line %d)", obj.Name(), p.Fset.Position(id.Pos()).Line)
				}
			}
			return true
		})
	}
	return g
}
