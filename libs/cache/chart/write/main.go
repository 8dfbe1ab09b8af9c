package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-platform/sluice/libs/cache/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FOLDER")
		os.Exit(2)
	}
	for name, content := range chart.Files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), content, 0o644); err != nil { //nolint:gosec // documents are for everybody
			fmt.Fprintln(os.Stderr, "write pictures:", err)
			os.Exit(1)
		}
	}
}
