package servertest

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
)

// Kafka returns the shared brokers and a prefix of the test's own ("t0123456789ab.") for the topics it makes and the
// groups it uses. Topics with that prefix are deleted after the test; groups expire by themselves.
func Kafka(t testing.TB) (brokers []string, topicPrefix string) {
	t.Helper()
	brokers = strings.Split(mustEnv(t, withservers.EnvKafka), ",")
	topicPrefix = unique() + "."
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		if err := deleteTopics(ctx, brokers, topicPrefix); err != nil {
			t.Errorf("delete topics %s*: %v", topicPrefix, err)
		}
	})
	return brokers, topicPrefix
}

func deleteTopics(ctx context.Context, brokers []string, prefix string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	var ours []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, prefix) {
			ours = append(ours, name)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	answers, err := admin.DeleteTopics(ctx, ours...)
	if err != nil {
		return err
	}
	return answers.Error()
}
