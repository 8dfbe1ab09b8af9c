package stream

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Config says which Kafka, and whose topics on it.
type Config struct {
	Brokers           []string `koanf:"brokers" doc:"Kafka brokers to ask first, host:port."`
	TopicPrefix       string   `koanf:"topicPrefix" doc:"Put before the name of every topic and consumer group, so that deployments can share a Kafka."`
	ClientID          string   `koanf:"clientId" doc:"Name that Kafka's logs and quotas know this process by."`
	ReplicationFactor int16    `koanf:"replicationFactor" doc:"Replicas of topics that Sluice creates; 0 means 1. Use 3 on a cluster of three brokers or more."`

	TLS  TLSConfig  `koanf:"tls"`
	SASL SASLConfig `koanf:"sasl"`
}

// DefaultConfig is a broker on this machine.
func DefaultConfig() Config {
	return Config{Brokers: []string{"127.0.0.1:9092"}, ClientID: "sluice", ReplicationFactor: 1}
}

// Topic is the full name of a topic of the registry.
func (c Config) Topic(name string) string { return c.TopicPrefix + name }

// ClientOptions are the options all of Sluice's Kafka clients share. The
// library's defaults wait up to ten seconds for a dead broker and five between
// two looks at who leads a partition; a rule has less time than that.
func (c Config) ClientOptions() []kgo.Opt {
	opts := append(c.secured(), []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.RetryBackoffFn(retryPause),
	}...)
	if c.ClientID != "" {
		opts = append(opts, kgo.ClientID(c.ClientID))
	}
	return opts
}

// retryPause keeps a client's own retries brisk: the server is near, and
// reconnecting costs less than a late rule.
func retryPause(failures int) time.Duration {
	const first, longest = 50 * time.Millisecond, time.Second
	return min(longest, first<<min(failures, 5))
}
