package main

import (
	"fmt"
	"os"
	"path/filepath"

	cachechart "github.com/sluice-platform/sluice/tools/charts/cache"
	limitchart "github.com/sluice-platform/sluice/tools/charts/limit"
)

//go:generate go run . ../../docs

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: charts DOCS")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write pictures:", err)
		os.Exit(1)
	}
}

func write(docs string) error {
	algorithms, err := limitchart.Files()
	if err != nil {
		return err
	}
	for folder, files := range map[string]map[string][]byte{"algorithms": algorithms, "walks/cache-stampede": cachechart.Files()} {
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(docs, folder, name), content, 0o644); err != nil { //nolint:gosec // documents are for everybody
				return err
			}
		}
	}
	return nil
}
