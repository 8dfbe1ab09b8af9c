package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// cleanEvery is how often old mirror records (one a second in each compacted
// topic, some 20 KB a minute) and expired usage go. Not more often: a kill in
// the moment a topic is written anew costs its records, though no more than the
// relay can fill again.
const cleanEvery = 10 * time.Minute

// brokenKafka begins the ending of a log's name that was moved aside.
const brokenKafka = ".broken-"

// kafka is a broker in this process, with its log on disk.
type kafka struct {
	cluster *kfake.Cluster
	addr    string
	end     chan struct{}
	ended   sync.WaitGroup
}

// startKafka opens the log in dir, or a new one. A log that cannot be read is
// moved aside with a warning: the compacted topics are filled again from
// Postgres, and what is lost is usage that nobody had read yet.
func startKafka(dir string, port int, log *slog.Logger) (*kafka, error) {
	cluster, err := openKafka(dir, port)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		aside := dir + brokenKafka + strconv.FormatInt(time.Now().Unix(), 10)
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
	k := &kafka{cluster: cluster, addr: cluster.ListenAddrs()[0], end: make(chan struct{})}
	cluster.Compact() // what lies there from before need not be read
	k.ended.Go(func() { k.clean(cleanEvery) })
	return k, nil
}

// clean compacts, and deletes what is past its retention. The broker's own
// timer begins only when a topic is made or changed, so it never runs on a log
// that is there already.
func (k *kafka) clean(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.cluster.Compact()
		case <-k.end:
			return
		}
	}
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
	return kfake.NewCluster(kfake.Ports(port), kfake.DataDir(dir))
}

// stop writes what is in memory and returns when the broker is gone. Cleaning
// ends first: a call to a closed cluster never returns.
func (k *kafka) stop() {
	close(k.end)
	k.ended.Wait()
	k.cluster.Close()
}
