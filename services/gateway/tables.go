package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// tables are the compacted topics the gate decides by. What requests see of
// them are the sinks: an index, a snapshot and a table of hashes, none of which
// takes a lock to be read.
type tables struct {
	rules     *stream.Table[*rule.Compiled]
	overrides *stream.Table[*rule.CompiledOverride]
	catalog   *stream.Table[*routing.Service]
	keys      *stream.Table[*identify.Key]
	grants    *stream.Table[grants.Wallet]
	// purges are asked by the cache alone, which does nothing before they are
	// ready.
	purges *stream.Table[httpcache.Purge]
}

// sinks are the receiving ends, each written by its own table's goroutine.
type sinks struct {
	index  *rule.Index
	routes *routing.Table
	keys   *identify.Keys
	purges purgeSink
	grants *grantTable
}

// tablesFrom is what all of them are read with.
type tablesFrom struct {
	cfg stream.Config
	reg prometheus.Registerer
	log *slog.Logger
	now func() time.Time
}

func newTables(cfg stream.Config, to sinks, reg prometheus.Registerer, log *slog.Logger, now func() time.Time) (*tables, error) {
	from := tablesFrom{cfg, reg, log, now}
	var t tables
	var errs [6]error
	t.rules, errs[0] = openTable(from, rules.Topic, decodeRule, salvageRule, ruleSink{to.index})
	t.overrides, errs[1] = openTable(from, overrides.Topic, decodeOverride, nil, overrideSink{to.index})
	t.catalog, errs[2] = openTable(from, catalog.Topic, routing.DecodeService, nil, to.routes)
	t.keys, errs[3] = openTable(from, keys.Topic, identify.DecodeKey, nil, to.keys)
	t.purges, errs[4] = openTable(from, purges.Topic, decodePurge, nil, to.purges)
	t.grants, errs[5] = openTable(from, grants.Topic, decodeGrants, nil, to.grants)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return &t, nil
}

func openTable[V any](
	from tablesFrom, topic string, decode func(string, []byte) (V, error), salvage func(string, []byte, error) (V, bool), sink stream.Sink[V],
) (*stream.Table[V], error) {
	t, err := stream.NewTable(from.cfg, stream.TableOptions[V]{
		Topic: topic, Decode: decode, Salvage: salvage, Sink: sink, Registerer: from.reg, Log: from.log, Now: from.now,
	})
	if err != nil {
		return nil, fmt.Errorf("table of %s: %w", topic, err)
	}
	return t, nil
}

// ready is nil when each table that decides has once equalled a mirror record.
func (t *tables) ready() error {
	return errors.Join(t.rules.Ready(), t.overrides.Ready(), t.catalog.Ready(), t.keys.Ready(), t.grants.Ready())
}

// decodeRule reads one record of rules.v1. A rule that this build cannot
// enforce (one of a newer control plane, say) is an error, so that the table
// keeps the last version it could.
func decodeRule(id string, value []byte) (*rule.Compiled, error) {
	c, err := rule.Decode(value)
	if err != nil {
		return nil, err
	}
	if c.ID != id {
		return nil, fmt.Errorf("record %q holds rule %q", id, c.ID)
	}
	return c, nil
}

// salvageRule stands in for a rule of which no version could be read.
func salvageRule(id string, value []byte, why error) (*rule.Compiled, bool) {
	c, ok := rule.Salvage(value, why)
	return c, ok && c.ID == id
}

// degraded says what is not in force as it was written, empty where all is.
func (t *tables) degraded() string {
	n := t.rules.Unread()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d rules cannot be read by this build: GET /debug/gateway/tables/%s names them", n, rules.Topic)
}

// decodeOverride reads one record of overrides.v1.
func decodeOverride(id string, value []byte) (*rule.CompiledOverride, error) {
	o, err := rule.DecodeOverride(value)
	if err != nil {
		return nil, err
	}
	if o.ID != id {
		return nil, fmt.Errorf("record %q holds override %q", id, o.ID)
	}
	return o, nil
}

// ruleSink hands the table of rules to the index.
type ruleSink struct{ index *rule.Index }

// Replace implements stream.Sink.
func (s ruleSink) Replace(entries map[string]stream.Entry[*rule.Compiled]) {
	all := make([]*rule.Compiled, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.Value)
	}
	s.index.ReplaceCompiled(all)
}

// Apply implements stream.Sink.
func (s ruleSink) Apply(c stream.Change[*rule.Compiled]) {
	if c.Deleted {
		s.index.Delete(c.Key)
		return
	}
	s.index.PutCompiled(c.Entry.Value)
}

// overrideSink hands the table of overrides to the index.
type overrideSink struct{ index *rule.Index }

// Replace implements stream.Sink.
func (s overrideSink) Replace(entries map[string]stream.Entry[*rule.CompiledOverride]) {
	all := make([]*rule.CompiledOverride, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.Value)
	}
	s.index.ReplaceOverrides(all)
}

// Apply implements stream.Sink.
func (s overrideSink) Apply(c stream.Change[*rule.CompiledOverride]) {
	if c.Deleted {
		s.index.DeleteOverride(c.Key)
		return
	}
	s.index.PutOverride(c.Entry.Value)
}

// decodePurge reads one record of purges.v1.
func decodePurge(id string, value []byte) (httpcache.Purge, error) {
	var p purges.Purge
	if err := json.Unmarshal(value, &p); err != nil {
		return httpcache.Purge{}, fmt.Errorf("read purge: %w", err)
	}
	if p.ID != id {
		return httpcache.Purge{}, fmt.Errorf("record %q holds purge %q", id, p.ID)
	}
	return httpcache.Purge{Family: p.Service, URL: p.URL, Prefix: p.Prefix, Tag: p.Tag, All: p.All}, nil
}

// purgeSink hands the table of purges to the cache. The control plane deletes a
// purge when no response can be left that is older (purges.MaxLife).
type purgeSink struct{ index *httpcache.Purges }

// Replace implements stream.Sink.
func (s purgeSink) Replace(entries map[string]stream.Entry[httpcache.Purge]) {
	all := make(map[string]httpcache.Record, len(entries))
	for id, e := range entries {
		all[id] = purgeRecord(e)
	}
	s.index.Replace(all)
}

// Apply implements stream.Sink.
func (s purgeSink) Apply(c stream.Change[httpcache.Purge]) {
	if c.Deleted {
		s.index.Delete(c.Key)
		return
	}
	s.index.Put(c.Key, purgeRecord(c.Entry))
}

func purgeRecord(e stream.Entry[httpcache.Purge]) httpcache.Record {
	return httpcache.Record{Purge: e.Value, At: httpcache.Position{Generation: e.Generation, Version: e.Version}}
}
