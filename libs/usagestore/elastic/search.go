package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

type object = map[string]any

// order is usagestore.Position's. Without a template an index has no mapping
// to sort by, hence unmapped_type.
var order = []object{
	{"ts": object{"order": "desc", "unmapped_type": "date"}},
	{"id": object{"order": "desc", "unmapped_type": "keyword"}},
	{"tenantId": object{"order": "desc", "unmapped_type": "keyword", "missing": "_last"}},
}

// Search reads one document more than the page holds, to know whether another
// page follows.
func (s *Store) Search(ctx context.Context, q usagestore.Query) (usagestore.Page, error) {
	after, err := usagestore.ParseCursor(q.Cursor)
	if err != nil {
		return usagestore.Page{}, err
	}
	limit := q.PageLimit()
	body := object{
		"size": limit + 1, "sort": order, "track_total_hits": false,
		"query": object{"bool": object{"filter": filters(q, after)}},
	}
	events, err := s.query(ctx, body)
	if err != nil {
		return usagestore.Page{}, err
	}
	page := usagestore.Page{Events: events}
	if len(events) > limit {
		page.Events = events[:limit]
		page.Next = usagestore.PositionOf(events[limit-1]).Cursor()
	}
	return page, nil
}

// Get searches all days, since the id does not say which.
func (s *Store) Get(ctx context.Context, id string) (usage.Event, error) {
	events, err := s.query(ctx, object{
		"size": 1, "sort": order, "track_total_hits": false,
		"query": object{"term": object{"id": id}},
	})
	switch {
	case err != nil:
		return usage.Event{}, err
	case len(events) == 0:
		return usage.Event{}, usagestore.ErrNotFound
	}
	return events[0], nil
}

func filters(q usagestore.Query, after *usagestore.Position) []object {
	all := []object{}
	term := func(field, value string) {
		if value != "" {
			all = append(all, object{"term": object{field: value}})
		}
	}
	term("tenantId", q.TenantID)
	term("decision", q.Decision)
	span := object{}
	if !q.From.IsZero() {
		span["gte"] = q.From.UTC().Format(time.RFC3339Nano)
	}
	if !q.To.IsZero() {
		span["lt"] = q.To.UTC().Format(time.RFC3339Nano)
	}
	if len(span) > 0 {
		all = append(all, object{"range": object{"ts": span}})
	}
	if after != nil {
		all = append(all, behind(*after))
	}
	return all
}

// behind selects what follows a position. A filter rather than search_after:
// that would have to name a missing tenant, which servers do differently.
func behind(p usagestore.Position) object {
	less := func(field string, value any) object { return object{"range": object{field: object{"lt": value}}} }
	same := func(field string, value any) object { return object{"term": object{field: value}} }
	both := func(all ...object) object { return object{"bool": object{"filter": all}} }
	either := func(some ...object) object {
		return object{"bool": object{"should": some, "minimum_should_match": 1}}
	}
	at := time.UnixMilli(p.At).UTC().Format(time.RFC3339Nano)
	older := []object{less("ts", at), both(same("ts", at), less("id", p.ID))}
	if p.TenantID == "" {
		return either(older...) // without a tenant is last
	}
	lower := either(less("tenantId", p.TenantID), object{"bool": object{"must_not": object{"exists": object{"field": "tenantId"}}}})
	return either(append(older, both(same("ts", at), same("id", p.ID), lower))...)
}

func (s *Store) query(ctx context.Context, body object) ([]usage.Event, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode search: %w", err)
	}
	yes := true
	res, err := esapi.SearchRequest{
		Index: []string{s.pattern()}, Body: reader(b),
		IgnoreUnavailable: &yes, AllowNoIndices: &yes,
	}.Do(ctx, s.transport)
	var answer struct {
		Hits struct {
			Hits []struct {
				Source usage.Event `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	if err := finish(res, err, "search", &answer); err != nil {
		return nil, err
	}
	if answer.Shards.Failed > 0 {
		return nil, fmt.Errorf("elasticsearch: search: %d shards failed, the answer would have holes", answer.Shards.Failed)
	}
	events := make([]usage.Event, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		events[i] = usagestore.Canonical(h.Source)
	}
	return events, nil
}
