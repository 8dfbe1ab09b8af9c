// Command limit holds libs/limit's store against other limiters on real processes and a Redis of its own, and prints
// tables: make bench-limit. docs/limiters-compared.md has what they say.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-platform/sluice/bench/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench limit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var n node
	if is, err := fleet.Task(&n); is {
		if err != nil {
			return err
		}
		return n.run(ctx)
	}
	o, err := options(os.Args[1:])
	if err != nil {
		return err
	}
	return compare(ctx, o)
}
