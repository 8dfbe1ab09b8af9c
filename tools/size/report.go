package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is all that is measured.
type Report struct {
	Lines    int        `json:"lines"` // of Go outside tests
	Lua      int        `json:"lua"`
	Packages []*Package `json:"packages"`
	Chain    []string   `json:"chain"` // the longest chain of imports
	Measures []Measure  `json:"measures"`
	Over     []Measure  `json:"over"`
}

// Package is one package without its tests.
type Package struct {
	Path   string `json:"path"` // below the root
	Files  int    `json:"files"`
	Lines  int    `json:"lines"`
	Arrows int    `json:"arrows"`
	Back   int    `json:"back"`
}

func (p *Package) backPercent() int {
	if p.Arrows == 0 {
		return 0
	}
	return 100 * p.Back / p.Arrows
}

// Measure is a figure with a bound.
type Measure struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Value int    `json:"value"`
	Bound int    `json:"bound"` // the largest value allowed
}

func measure(root string) (*Report, error) {
	files, err := walk(root)
	if err != nil {
		return nil, err
	}
	loaded, err := load(root, "work")
	if err != nil {
		return nil, err
	}
	r := &Report{Chain: longestChain(loaded)}
	byPath := map[string]*Package{}
	for _, f := range files {
		if f.lua() {
			r.Lua += f.lines
			continue
		}
		p := byPath[f.dir()]
		if p == nil {
			p = &Package{Path: f.dir()}
			byPath[f.dir()] = p
			r.Packages = append(r.Packages, p)
		}
		p.Files++
		p.Lines += f.lines
		r.Lines += f.lines
	}
	for _, l := range loaded {
		if p := byPath[l.path]; p != nil {
			graph := arrowsOf(l)
			p.Arrows, p.Back = graph.total(), graph.back(graph.order())
		}
	}
	slices.SortFunc(r.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	documents, err := documentMeasures(root)
	if err != nil {
		return nil, err
	}
	r.Measures = slices.Concat(packageMeasures(r), areaMeasures(files, r.Lines), documents)
	for _, m := range r.Measures {
		if m.Value > m.Bound {
			r.Over = append(r.Over, m)
		}
	}
	return r, nil
}

func (r *Report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tlines\tarrows\tback up\t%\t  package")
	for _, p := range r.Packages {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s\n", p.Files, p.Lines, p.Arrows, p.Back, p.backPercent(), p.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d packages, %d lines of Go outside tests, %d lines of Lua\n", len(r.Packages), r.Lines, r.Lua)
	fmt.Fprintf(out, "longest chain of imports (%d): %s\n\n", len(r.Chain), strings.Join(r.Chain, " → "))

	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "value\tbound\t\t  areas and documents")
	for _, m := range r.Measures {
		if m.Kind == kindArea || m.Kind == kindWords {
			fmt.Fprintf(w, "%d\t%d\t%s\t  %s\n", m.Value, m.Bound, verdict(m), m.Name)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Over) == 0 {
		_, err := fmt.Fprintln(out, "\nnothing is over its bound")
		return err
	}
	fmt.Fprintf(out, "\n%d over their bound:\n", len(r.Over))
	for _, m := range r.Over {
		fmt.Fprintf(out, "  %s, %s: %d, at most %d\n", m.Kind, m.Name, m.Value, m.Bound)
	}
	return nil
}

func verdict(m Measure) string {
	if m.Value > m.Bound {
		return "over"
	}
	return ""
}
