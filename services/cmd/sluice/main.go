package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-platform/sluice/services/sluice"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the second one kills: a stop that hangs must not
	// need another terminal.
	context.AfterFunc(ctx, stop)
	code := sluice.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
