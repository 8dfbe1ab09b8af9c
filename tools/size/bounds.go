package main

import (
	"os"
	"path/filepath"
	"strings"
)

// Kinds of measures.
const (
	kindFiles = "files"
	kindLines = "lines"
	kindBack  = "back-up percent"
	kindDepth = "import depth"
	kindArea  = "lines of area"
	kindWords = "words"
)

// The bounds of a package.
const (
	mostFiles = 25
	mostLines = 3500
	mostBack  = 14 // whole percent: under 15
	mostDepth = 10
	mostTotal = 61000
)

// area is a part of the tree with a bound of its own: all files whose path
// begins with one of the prefixes. A file belongs to the first area that
// claims it. Areas name the folders of today and those they move to.
type area struct {
	name     string
	most     int
	prefixes []string
}

var areas = []area{
	{"the Redis store with its restore", 3300, []string{"libs/limit/redisstore/", "libs/limit/redis/"}},
	{"the journal", 700, []string{
		"libs/settle/", "libs/journal/", "services/gateway/internal/charge/journal", "services/gateway/internal/journal/",
	}},
	{"reservations with the gateway's side", 2000, []string{
		"libs/reserve/", "services/gateway/reserve", "services/gateway/internal/reservation/",
	}},
	{"charging in the gateway, with membership and local shares", 1300, []string{
		"services/gateway/internal/charge/", "services/gateway/internal/membership/", "services/gateway/internal/share/",
	}},
	{"the keeper", 1700, []string{"services/keeper/"}},
	{"decide.lua", 400, []string{"schemas/redis/decide.lua"}},
}

func packageMeasures(r *Report) []Measure {
	all := []Measure{{kindDepth, "the tree", len(r.Chain), mostDepth}}
	for _, p := range r.Packages {
		all = append(all,
			Measure{kindFiles, p.Path, p.Files, mostFiles},
			Measure{kindLines, p.Path, p.Lines, mostLines},
			Measure{kindBack, p.Path, p.backPercent(), mostBack})
	}
	return all
}

func areaMeasures(files []file, total int) []Measure {
	sums := make([]int, len(areas))
	for _, f := range files {
		for i, a := range areas {
			if a.holds(f.path) {
				sums[i] += f.lines
				break
			}
		}
	}
	all := []Measure{{kindArea, "schemas, libs and services", total, mostTotal}}
	for i, a := range areas {
		all = append(all, Measure{kindArea, a.name, sums[i], a.most})
	}
	return all
}

func (a area) holds(path string) bool {
	for _, prefix := range a.prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// documentMeasures counts the words of the documents that have a bound.
func documentMeasures(root string) ([]Measure, error) {
	var all []Measure
	for _, d := range []struct {
		pattern string
		most    int
	}{
		{"docs/guarantees.md", 1200},
		{"docs/adr/*.md", 800},
		{"services/*/README.md", 800},
	} {
		found, err := filepath.Glob(filepath.Join(root, d.pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			all = append(all, Measure{kindWords, filepath.ToSlash(rel), len(strings.Fields(string(text))), d.most})
		}
	}
	return all, nil
}
