package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// tables are the three compacted topics the gate decides by. What requests see
// of them are the sinks: an index, a snapshot and a table of hashes, none of
// which takes a lock to be read.
type tables struct {
	rules   *stream.Table[rules.Rule]
	catalog *stream.Table[*service]
	keys    *stream.Table[*apiKey]
}

// sinks are the receiving ends, each written by its own table's goroutine.
type sinks struct {
	rules  *ruleSink
	routes *routes
	keys   *keyTable
}

func newTables(cfg stream.Config, to sinks, reg prometheus.Registerer, log *slog.Logger, now func() time.Time) (*tables, error) {
	r, err := stream.NewTable(cfg, stream.TableOptions[rules.Rule]{
		Topic: rules.Topic, Decode: decodeRule, Sink: to.rules, Registerer: reg, Log: log, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("table of rules: %w", err)
	}
	c, err := stream.NewTable(cfg, stream.TableOptions[*service]{
		Topic: catalog.Topic, Decode: decodeService, Sink: to.routes, Registerer: reg, Log: log, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("table of services: %w", err)
	}
	k, err := stream.NewTable(cfg, stream.TableOptions[*apiKey]{
		Topic: keys.Topic, Decode: decodeKey, Sink: to.keys, Registerer: reg, Log: log, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("table of keys: %w", err)
	}
	return &tables{rules: r, catalog: c, keys: k}, nil
}

// ready is nil when each table has once equalled a mirror record.
func (t *tables) ready() error {
	return errors.Join(t.rules.Ready(), t.catalog.Ready(), t.keys.Ready())
}

// decodeRule reads one record of rules.v1. A rule that this build cannot
// enforce (one of a newer control plane, say) is an error, so that the table
// keeps the last version it could.
func decodeRule(id string, value []byte) (rules.Rule, error) {
	var r rules.Rule
	if err := json.Unmarshal(value, &r); err != nil {
		return rules.Rule{}, fmt.Errorf("read rule: %w", err)
	}
	if r.ID != id {
		return rules.Rule{}, fmt.Errorf("record %q holds rule %q", id, r.ID)
	}
	c, err := rule.Compile(r)
	if err != nil {
		return rules.Rule{}, fmt.Errorf("compile rule: %w", err)
	}
	return c.Rule, nil
}

// ruleSink hands the table of rules to the index.
type ruleSink struct {
	index *rule.Index
	log   *slog.Logger
}

// Replace implements stream.Sink.
func (s *ruleSink) Replace(entries map[string]stream.Entry[rules.Rule]) {
	all := make([]rules.Rule, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.Value)
	}
	if err := s.index.Replace(all); err != nil {
		s.log.Error("rules are not enforced in their newest version", "error", err)
	}
}

// Apply implements stream.Sink.
func (s *ruleSink) Apply(c stream.Change[rules.Rule]) {
	if c.Deleted {
		s.index.Delete(c.Key)
		return
	}
	if err := s.index.Put(c.Entry.Value); err != nil {
		// decodeRule refuses what the index would, so this is a bug; the index
		// keeps the rule's last good version.
		s.log.Error("rule is not enforced in its newest version", "rule", c.Key, "error", err)
	}
}
