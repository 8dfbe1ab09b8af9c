package devserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RedisOptions choose where and how a Redis runs. Dir is required.
type RedisOptions struct {
	// Dir holds data and log; it is made when missing.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// PortHint names what chooses another port (a flag, a setting) in the error of a taken one.
	PortHint string
	// AppendOnly keeps the data, synced once a second, as in production. Without it nothing is kept.
	AppendOnly bool
	// Cluster makes it a node of a Redis Cluster, with a free port for the bus, and no slots yet.
	Cluster bool
	// Args are further options of redis-server, for example "--maxmemory", "64mb". They win over the ones above.
	Args []string
}

// Redis is a redis-server. Nothing is ever evicted (maxmemory-policy noeviction): counters are not a cache.
type Redis struct{ server }

// StartRedis starts redis-server and returns when it answers PING. ctx bounds the wait only.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w (Debian: apt-get install redis-server)", err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	return onPort(ctx, "redis", o.Port, o.PortHint, func(port int) (*Redis, error) {
		args, err := redisArgs(port, o)
		if err != nil {
			return nil, err
		}
		r := &Redis{server{spec: launch{
			name: "redis", port: port, hint: o.PortHint, dir: o.Dir, program: program, args: args,
			ready:      func(ctx context.Context) error { return PingRedis(ctx, loopback(port)) },
			stopSignal: syscall.SIGTERM, deathSignal: syscall.SIGKILL, stopWait: 10 * time.Second,
		}}}
		if err := r.Start(ctx); err != nil {
			return nil, err
		}
		return r, nil
	})
}

func redisArgs(port int, o RedisOptions) ([]string, error) {
	appendOnly := "no"
	if o.AppendOnly {
		appendOnly = "yes"
	}
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", ".", "--daemonize", "no",
		// No RDB: a save at shutdown would keep data that the caller asked not to keep.
		"--save", "", "--appendonly", appendOnly, "--appendfsync", "everysec",
		"--maxmemory-policy", "noeviction",
	}
	if o.AppendOnly {
		// What gateways ask of a Redis that counts: no stop of milliseconds for a rewrite of a small file, nor while one is written.
		args = append(args, "--no-appendfsync-on-rewrite", "yes", "--auto-aof-rewrite-min-size", "4gb")
	}
	if o.Cluster {
		bus, err := FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", strconv.Itoa(bus))
	}
	return append(args, o.Args...), nil
}

// PingRedis is one probe: nil when the server at addr (host:port) answers PONG. A server that still reads its file
// answers LOADING, which is not ready.
func PingRedis(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	// NOAUTH is an answer too: the caller has set a password in Args.
	if answer := strings.TrimSpace(line); answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}
