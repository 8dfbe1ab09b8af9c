package withservers

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// The images, pinned as in docker-compose.yml.
const (
	imagePostgres = "postgres:17.6"
	imageRedis    = "redis:7.2.10"
	imageKafka    = "apache/kafka:4.1.0"
	imageSearch   = "docker.elastic.co/elasticsearch/elasticsearch:8.19.4"
)

func dockerPostgres(ctx context.Context) (running, error) {
	port, err := devserver.FreePort()
	if err != nil {
		return running{}, err
	}
	url := fmt.Sprintf("postgres://sluice@127.0.0.1:%d/postgres?sslmode=disable", port)
	return container{
		image: imagePostgres, port: port, inside: 5432,
		options: []string{"-e", "POSTGRES_USER=sluice", "-e", "POSTGRES_HOST_AUTH_METHOD=trust", "-e", "POSTGRES_DB=postgres"},
		args: []string{
			"-c", "wal_level=logical", "-c", "max_wal_senders=20", "-c", "max_replication_slots=100",
			"-c", "max_connections=300", "-c", "fsync=off",
		},
		env:   []string{EnvPostgres + "=" + url},
		ready: func(ctx context.Context) error { return devserver.PingPostgres(ctx, url) },
	}.run(ctx)
}

func dockerRedis(ctx context.Context) (running, error) {
	port, err := devserver.FreePort()
	if err != nil {
		return running{}, err
	}
	addr := loopback(port)
	return container{
		image: imageRedis, port: port, inside: 6379,
		args:  []string{"redis-server", "--save", "", "--maxmemory-policy", "noeviction"},
		env:   []string{EnvRedis + "=" + addr},
		ready: func(ctx context.Context) error { return devserver.PingRedis(ctx, addr) },
	}.run(ctx)
}

func dockerKafka(ctx context.Context) (running, error) {
	port, err := devserver.FreePort()
	if err != nil {
		return running{}, err
	}
	addr := loopback(port)
	options := []string{}
	for _, pair := range []string{
		"NODE_ID=1", "PROCESS_ROLES=broker,controller", "CONTROLLER_QUORUM_VOTERS=1@localhost:9093",
		"CONTROLLER_LISTENER_NAMES=CONTROLLER", "LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093",
		"LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		// Clients come back to what is advertised: the port outside.
		"ADVERTISED_LISTENERS=PLAINTEXT://" + addr,
		"AUTO_CREATE_TOPICS_ENABLE=false", "OFFSETS_TOPIC_REPLICATION_FACTOR=1",
		"TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1", "TRANSACTION_STATE_LOG_MIN_ISR=1",
		"SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR=1", "SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR=1",
		"GROUP_INITIAL_REBALANCE_DELAY_MS=0",
	} {
		options = append(options, "-e", "KAFKA_"+pair)
	}
	return container{
		image: imageKafka, port: port, inside: 9092, options: options,
		env:   []string{EnvKafka + "=" + addr},
		ready: func(ctx context.Context) error { return devserver.PingKafka(ctx, addr) },
	}.run(ctx)
}

func dockerSearch(ctx context.Context) (running, error) {
	port, err := devserver.FreePort()
	if err != nil {
		return running{}, err
	}
	url := "http://" + loopback(port)
	return container{
		image: imageSearch, port: port, inside: 9200,
		options: []string{
			"-e", "discovery.type=single-node", "-e", "xpack.security.enabled=false", "-e", "xpack.ml.enabled=false",
			"-e", "ES_JAVA_OPTS=-Xms512m -Xmx512m", "-e", "cluster.routing.allocation.disk.threshold_enabled=false",
		},
		env:   []string{EnvSearch + "=" + url, EnvSearchFlavor + "=elasticsearch"},
		ready: func(ctx context.Context) error { return devserver.PingSearch(ctx, url) },
	}.run(ctx)
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// container is one server in Docker. --rm and a forced removal leave neither container nor volume.
type container struct {
	image         string
	port, inside  int // on the host's loopback, and in the container
	options, args []string
	env           []string
	ready         func(context.Context) error
}

func (c container) run(ctx context.Context) (running, error) {
	args := []string{"run", "--rm", "-d", "--label", "sluice.with-servers", "-p", fmt.Sprintf("127.0.0.1:%d:%d", c.port, c.inside)}
	args = append(append(append(args, c.options...), c.image), c.args...)
	out, err := docker(ctx, args...)
	if err != nil {
		return running{}, err
	}
	lines := strings.Fields(out)
	if len(lines) == 0 {
		return running{}, fmt.Errorf("docker run %s: no container id", c.image)
	}
	id := lines[len(lines)-1]
	stop := func(ctx context.Context) error {
		_, err := docker(ctx, "rm", "-f", "-v", id)
		return err
	}
	if err := devserver.AwaitReady(ctx, c.ready); err != nil {
		logs, _ := docker(context.WithoutCancel(ctx), "logs", "--tail", "20", id)
		_ = stop(context.WithoutCancel(ctx))
		return running{}, fmt.Errorf("start %s: %w\n%s", c.image, err, logs)
	}
	return running{env: c.env, from: c.image, stop: stop}, nil
}

func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}
