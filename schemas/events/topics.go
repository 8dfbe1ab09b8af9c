package events

import (
	_ "embed"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed topics.yaml
var topicsYAML []byte

// Topic is one entry of the registry. Names carry no deployment prefix.
type Topic struct {
	Name       string        `yaml:"name"`
	About      string        `yaml:"about"`
	Key        string        `yaml:"key"`
	Partitions int32         `yaml:"partitions"`
	Compacted  bool          `yaml:"compacted"`
	View       string        `yaml:"view"`
	Retention  time.Duration `yaml:"retention"`
	Producer   string        `yaml:"producer"`
	Consumers  []string      `yaml:"consumers"`
}

// Topics returns the registry in the order of topics.yaml. The file is
// embedded and checked by a test; an error means that the build is broken.
func Topics() ([]Topic, error) {
	var registry struct {
		Topics []Topic `yaml:"topics"`
	}
	if err := yaml.Unmarshal(topicsYAML, &registry); err != nil {
		return nil, fmt.Errorf("read topics.yaml: %w", err)
	}
	for _, t := range registry.Topics {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("topics.yaml: %s: %w", t.Name, err)
		}
	}
	return registry.Topics, nil
}

// check holds what consumers rely on: order across all keys of a compacted
// topic, which only a single partition gives, and a view to reconcile with.
func (t Topic) check() error {
	switch {
	case t.Compacted && t.Partitions != 1:
		return fmt.Errorf("a compacted topic has one partition, not %d", t.Partitions)
	case t.Compacted && t.View == "":
		return fmt.Errorf("a compacted topic names its view")
	case !t.Compacted && t.Retention <= 0:
		return fmt.Errorf("a topic that is not compacted has a retention")
	case t.Partitions < 1:
		return fmt.Errorf("partitions must be at least 1, not %d", t.Partitions)
	}
	return nil
}
