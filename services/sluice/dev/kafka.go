package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// kafka is a broker in this process, with its log on disk.
type kafka struct {
	cluster *kfake.Cluster
	addr    string
}

// startKafka opens the log in dir, or a new one. A log that cannot be read is
// moved aside with a warning: the compacted topics are filled again from
// Postgres, and what is lost is usage that nobody had read yet.
func startKafka(dir string, port int, log *slog.Logger) (*kafka, error) {
	cluster, err := openKafka(dir, port)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		aside := dir + ".broken-" + strconv.FormatInt(time.Now().Unix(), 10)
		if moved := os.Rename(dir, aside); moved != nil {
			if errors.Is(moved, fs.ErrNotExist) {
				return nil, fmt.Errorf("start kafka: %w", err)
			}
			return nil, fmt.Errorf("start kafka: %w", errors.Join(err, moved))
		}
		log.Warn("the log of the in-process Kafka cannot be read; starting a new one", "error", err, "moved", aside)
		cluster, err = openKafka(dir, port)
	}
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	return &kafka{cluster: cluster, addr: cluster.ListenAddrs()[0]}, nil
}

// openKafka turns a panic of the library over a torn file into an error.
func openKafka(dir string, port int) (cluster *kfake.Cluster, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("open %s: %v", dir, p)
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return kfake.NewCluster(
		kfake.Ports(port), kfake.DataDir(dir),
		// A mirror record a second lands in each compacted topic: the default of
		// an hour between two compactions lets thousands pile up.
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": "60000"}),
	)
}

// stop writes what is in memory and returns when the broker is gone.
func (k *kafka) stop() { k.cluster.Close() }
