package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// What sluice dev keeps in its folder, beside the lock. Reset deletes no more
// than this: a user may have named a folder that holds other things.
const (
	folderPostgres = "postgres"
	folderRedis    = "redis"
	folderKafka    = "kafka"
	folderSpool    = "spool"
	fileTickets    = "ticket-keys"
)

// Spool is the gateway's folder below a data folder; a second gateway's has -2 behind it.
func Spool(data string) string { return filepath.Join(data, folderSpool) }

// Reset deletes all data of a sluice dev, those of PostgreSQL that lie outside
// the folder among them, and returns what it deleted. Data on servers
// that the user configured are not touched.
func (f *Folder) Reset(ctx context.Context) (deleted []string, err error) {
	deleted, err = devserver.RemovePostgres(ctx, filepath.Join(f.Path, folderPostgres))
	if err != nil {
		return deleted, fmt.Errorf("reset: %w", err)
	}
	for _, name := range []string{folderRedis, folderKafka, folderKafka + brokenKafka + "*", folderSpool, folderSpool + "-*", fileTickets} {
		found, err := filepath.Glob(filepath.Join(f.Path, name))
		if err != nil {
			return deleted, fmt.Errorf("reset: %w", err)
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return deleted, fmt.Errorf("reset: %w", err)
			}
			deleted = append(deleted, path)
		}
	}
	return deleted, nil
}
