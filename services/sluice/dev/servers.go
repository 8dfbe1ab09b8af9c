package dev

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// How a user chooses another port of a server.
const (
	hintPostgres = "--postgres-port"
	hintRedis    = "--redis-port"
	hintKafka    = "--kafka-port"
)

// database is the name of the database in the development Postgres.
const database = "sluice"

// stopLimit bounds the stop of all servers together.
const stopLimit = 30 * time.Second

// ServerOptions say which servers to start, and where. A server without a port
// is not started: the user has one.
type ServerOptions struct {
	Dir                                string
	PostgresPort, RedisPort, KafkaPort int
	Log                                *slog.Logger
	// Discarded is called with a folder of old PostgreSQL data that was deleted
	// because Dir was.
	Discarded func(dir string)
}

// Servers are those that run for this sluice dev.
type Servers struct {
	postgres *devserver.Postgres
	redis    *redis
	kafka    *kafka
	nurses   []*nurse
}

// StartServers starts them one after another. After an error nothing runs.
func StartServers(ctx context.Context, o ServerOptions) (*Servers, error) {
	s := new(Servers)
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Servers) start(ctx context.Context, o ServerOptions) (err error) {
	if o.PostgresPort != 0 {
		s.postgres, err = devserver.StartPostgres(ctx, devserver.PostgresOptions{
			Dir: filepath.Join(o.Dir, folderPostgres), Port: o.PostgresPort, PortHint: hintPostgres, Database: database, Discarded: o.Discarded,
		})
		if err != nil {
			return err
		}
		s.nurses = append(s.nurses, &nurse{name: "postgres", server: s.postgres, log: o.Log})
	}
	if o.RedisPort != 0 {
		if s.redis, err = startRedis(ctx, filepath.Join(o.Dir, folderRedis), o.RedisPort, o.Log); err != nil {
			return err
		}
		if s.redis.server != nil {
			s.nurses = append(s.nurses, &nurse{name: "redis", server: s.redis.server, log: o.Log})
		}
	}
	if o.KafkaPort != 0 {
		if s.kafka, err = startKafka(filepath.Join(o.Dir, folderKafka), o.KafkaPort, o.Log); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops them in reverse order.
func (s *Servers) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var errs []error
	if s.kafka != nil {
		s.kafka.stop()
	}
	if s.redis != nil {
		errs = append(errs, s.redis.stop(ctx))
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Addresses are where the servers that these options start will be found; empty
// for one that is not started.
func (o ServerOptions) Addresses() (postgresURL, redis, kafka string) {
	local := func(port int) string {
		if port == 0 {
			return ""
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	if o.PostgresPort != 0 {
		postgresURL = devserver.PostgresURL(o.PostgresPort, database)
	}
	return postgresURL, local(o.RedisPort), local(o.KafkaPort)
}

// Overrides are the configuration keys that the servers' addresses give.
func (s *Servers) Overrides() (postgresURL, redisAddr string, brokers []string) {
	if s.postgres != nil {
		postgresURL = s.postgres.URL()
	}
	if s.redis != nil {
		redisAddr = s.redis.addr
	}
	if s.kafka != nil {
		brokers = []string{s.kafka.addr}
	}
	return postgresURL, redisAddr, brokers
}

// Describe says what runs where, a line each.
func (s *Servers) Describe() []Line {
	var lines []Line
	if s.postgres != nil {
		lines = append(lines, Line{"postgres", s.postgres.Addr(), "psql '" + s.postgres.URL() + "'; data in " + filepath.Join(s.postgres.Dir(), "data")})
	}
	if s.redis != nil {
		about := "in this process, NOTHING IS KEPT"
		if s.redis.server != nil {
			about = "redis-server; data in " + s.redis.server.Dir()
		}
		lines = append(lines, Line{"redis", s.redis.addr, about})
	}
	if s.kafka != nil {
		lines = append(lines, Line{"kafka", s.kafka.addr, "in this process, its log on disk"})
	}
	return lines
}
