package main

import (
	"fmt"
	"os"

	"github.com/sluice-platform/sluice/services/controlplane"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "genopenapi:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: genopenapi FILE")
	}
	spec, err := controlplane.Spec()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], spec, 0o644)
}
