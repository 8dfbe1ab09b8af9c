package sluice

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/sluice/config"
	"github.com/sluice-platform/sluice/services/sluice/dev"
)

// reset deletes the data of before and says what that was.
func reset(ctx context.Context, out io.Writer, folder *dev.Folder) error {
	deleted, err := folder.Reset(ctx)
	switch {
	case len(deleted) > 0:
		fmt.Fprintf(out, "reset: deleted %s\n", strings.Join(deleted, ", "))
	case err == nil:
		fmt.Fprintf(out, "reset: nothing to delete in %s\n", folder.Path)
	}
	return err
}

// printDevConfig prints what sluice dev would run with, the addresses of servers
// that it would start among it.
func printDevConfig(out io.Writer, loaded *config.Loaded, cfg config.Config, options dev.ServerOptions) error {
	postgres, redis, kafka := options.Addresses()
	if postgres != "" {
		cfg.Postgres.URL = service.Secret(postgres)
	}
	if redis != "" {
		cfg.Redis.Counters.Addr = redis
	}
	if kafka != "" {
		cfg.Kafka.Brokers = []string{kafka}
	}
	loaded.Config = cfg
	text, err := loaded.YAML(false)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
