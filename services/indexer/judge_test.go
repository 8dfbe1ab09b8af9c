package indexer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
)

func TestRecordsThatCannotBeDocumentsAreToldWhy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)
	event := func(ts time.Time) string { return fmt.Sprintf(`{"id":"x","ts":%q}`, ts.Format(time.RFC3339Nano)) }
	for name, c := range map[string]struct{ value, reason, detail string }{
		"now":                 {event(at), "", ""},
		"oldest day":          {event(at.AddDate(0, 0, -30)), "", ""},
		"just ahead":          {event(at.Add(5 * time.Minute)), "", ""},
		"newer field":         {`{"id":"x","ts":"2026-07-23T12:00:00Z","invented":{"later":1}}`, "", ""},
		"too old":             {event(at.AddDate(0, 0, -30).Add(-time.Millisecond)), deadletters.ReasonLate, "before"},
		"from the future":     {event(at.Add(5*time.Minute + time.Millisecond)), deadletters.ReasonLate, "after"},
		"year 2090":           {event(at.AddDate(64, 0, 0)), deadletters.ReasonLate, "after"},
		"no JSON":             {"\x00\xff", deadletters.ReasonUndecodable, "invalid character"},
		"empty":               {"", deadletters.ReasonUndecodable, "unexpected end"},
		"an array":            {"[1]", deadletters.ReasonUndecodable, "cannot unmarshal"},
		"another type":        {`{"id":7}`, deadletters.ReasonUndecodable, "id"},
		"without id":          {`{"ts":"2026-07-23T12:00:00Z"}`, deadletters.ReasonUndecodable, "no id"},
		"without time":        {`{"id":"x"}`, deadletters.ReasonUndecodable, "no ts"},
		"a time that is none": {`{"id":"x","ts":"yesterday"}`, deadletters.ReasonUndecodable, "yesterday"},
	} {
		_, v := judge(stream.Record{Value: []byte(c.value), Timestamp: at}, 30)
		if v.reason != c.reason || !strings.Contains(v.detail, c.detail) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Check(); err != nil {
		t.Fatal(err)
	}
	for key, spoil := range map[string]func(*Config){
		"group":         func(c *Config) { c.Group = "" },
		"batchSize":     func(c *Config) { c.BatchSize = 0 },
		"retentionDays": func(c *Config) { c.RetentionDays = 0 },
		"pruneEvery":    func(c *Config) { c.PruneEvery = 0 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "indexer."+key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
