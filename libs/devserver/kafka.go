package devserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaVersion is the broker deploy/dev/install.sh puts into the cache.
const KafkaVersion = "4.4.0"

// KafkaOptions choose where and how a broker runs. Dir is required.
type KafkaOptions struct {
	// Dir holds data, configuration and log; it is made when missing.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one. The controller takes a free one of its own, anew at each StartKafka.
	Port int
	// PortHint names what chooses another port (a flag, a setting) in the error of a taken one.
	PortHint string
	// HeapMB is the JVM's heap; 0 means 256.
	HeapMB int
	// Properties are added to server.properties and win over ours.
	Properties map[string]string
}

// Kafka is one broker that is its own KRaft controller. Topics are never created by a mere use of them.
type Kafka struct{ server }

// Brokers is the bootstrap list.
func (k *Kafka) Brokers() []string { return []string{k.Addr()} }

// StartKafka formats the data folder when it is new (some seconds, once), starts the broker and returns when it
// answers. ctx bounds the wait only; allow it a minute on a busy machine.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	classes, err := jars("kafka", KafkaVersion)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w (Debian: apt-get install default-jdk-headless)", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	options := jvm(orDefault(o.HeapMB, 256), "-cp", classes)
	return onPort(ctx, "kafka", o.Port, o.PortHint, func(port int) (*Kafka, error) {
		controller, err := FreePort()
		if err != nil {
			return nil, err
		}
		properties := filepath.Join(dir, "server.properties")
		if err := writeKafkaProperties(properties, kafkaProperties(dir, port, controller, o.Properties)); err != nil {
			return nil, fmt.Errorf("start kafka: %w", err)
		}
		tool := append(slices.Clone(options), "kafka.tools.StorageTool")
		k := &Kafka{server{spec: launch{
			name: "kafka", port: port, hint: o.PortHint, dir: dir, program: java,
			args:       append(slices.Clone(options), "kafka.Kafka", properties),
			prepare:    func(ctx context.Context) error { return formatKafka(ctx, dir, java, tool, properties) },
			ready:      func(ctx context.Context) error { return PingKafka(ctx, loopback(port)) },
			stopSignal: syscall.SIGTERM, deathSignal: syscall.SIGKILL, stopWait: 20 * time.Second,
		}}}
		if err := k.Start(ctx); err != nil {
			return nil, err
		}
		return k, nil
	})
}

func orDefault(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

// kafkaProperties are a single node's: one copy of everything, groups that do not wait for further members.
func kafkaProperties(dir string, port, controller int, more map[string]string) map[string]string {
	p := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.voters":                         "1@" + loopback(controller),
		"controller.listener.names":                        "CONTROLLER",
		"listeners":                                        "PLAINTEXT://" + loopback(port) + ",CONTROLLER://" + loopback(controller),
		"advertised.listeners":                             "PLAINTEXT://" + loopback(port),
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                                         filepath.Join(dir, "data"),
		"auto.create.topics.enable":                        "false",
		"offsets.topic.replication.factor":                 "1",
		"offsets.topic.num.partitions":                     "4",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "4",
		"share.coordinator.state.topic.min.isr":            "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"log.cleaner.dedupe.buffer.size":                   "16777216",
	}
	maps.Copy(p, more)
	return p
}

func writeKafkaProperties(path string, properties map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&b, "%s=%s\n", key, properties[key])
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// formatKafka gives a new data folder its cluster id. A folder that has one is left alone.
func formatKafka(ctx context.Context, dir, java string, tool []string, properties string) error {
	if _, err := os.Stat(filepath.Join(dir, "data", "meta.properties")); err == nil {
		return nil
	}
	// A half written folder of an interrupted run is formatted again: --ignore-formatted lets that pass.
	args := append(slices.Clone(tool), "format", "-t", clusterID(), "-c", properties, "--ignore-formatted")
	out, err := exec.CommandContext(ctx, java, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format %s: %w: %s", dir, err, out)
	}
	return nil
}

// clusterID is a random Kafka uuid: 16 bytes in 22 characters. A leading dash would read as an option of the tool.
func clusterID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return "S" + base64.RawURLEncoding.EncodeToString(raw[:])[1:]
}

// PingKafka is one probe: nil when the broker at addr (host:port) names itself in its metadata, which it does once its
// controller has let it in.
func PingKafka(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if len(answer.Brokers) == 0 {
		return fmt.Errorf("kafka names no broker yet")
	}
	return nil
}
