package events_test

import (
	"testing"

	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Every topic that a Go type speaks of stands in the registry, and the other
// way round: a topic nobody has a type for cannot be read.
func TestRegistryNamesEveryTopic(t *testing.T) {
	t.Parallel()
	topics, err := events.Topics()
	if err != nil {
		t.Fatal(err)
	}
	typed := map[string]bool{
		rules.Topic: false, overrides.Topic: false, catalog.Topic: false, keys.Topic: false, purges.Topic: false, grants.Topic: false,
		usage.Topic: false, deadletters.Topic: false, gateways.Topic: false, quotaevents.Topic: false,
	}
	for _, topic := range topics {
		if _, ok := typed[topic.Name]; !ok {
			t.Errorf("topic %s has no Go type", topic.Name)
		}
		typed[topic.Name] = true
		if topic.About == "" || topic.Key == "" || topic.Producer == "" {
			t.Errorf("topic %s: about, key and producer must be given", topic.Name)
		}
	}
	for name, found := range typed {
		if !found {
			t.Errorf("topic %s is missing from topics.yaml", name)
		}
	}
}
