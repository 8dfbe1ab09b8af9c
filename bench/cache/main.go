// Command cache holds libs/cache and the gateway's cache against others, on real processes and a Redis of its
// own, and prints tables: make bench-cache. docs/cache-compared.md has what they say.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// The kernel tells children of their parent's death when the thread that made them ends: they are made by this one.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench cache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if spec := os.Getenv(childEnv); spec != "" {
		return child(ctx, []byte(spec))
	}
	o, err := options(os.Args[1:])
	if err != nil {
		return err
	}
	return compare(ctx, o)
}
