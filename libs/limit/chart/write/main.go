package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-platform/sluice/libs/limit/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FOLDER")
		os.Exit(2)
	}
	files, err := chart.Files()
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), content, 0o644) //nolint:gosec // documents are for everybody
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write pictures:", err)
		os.Exit(1)
	}
}
