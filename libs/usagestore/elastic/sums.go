package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

// bucket is one of an aggregation. Sums are floats there, exact below 2^53.
type bucket struct {
	Key      json.RawMessage `json:"key"`
	Text     string          `json:"key_as_string"`
	Count    int64           `json:"doc_count"`
	Amount   struct{ Value float64 }
	Charges  struct{ Mine struct{ Counters buckets } }
	Counters buckets
}

type buckets struct {
	Buckets []bucket
	Other   int64 `json:"sum_other_doc_count"`
}

var amount = object{"amount": object{"sum": object{"field": "charges.amount"}}}

// Totals pages through the counters by a composite aggregation, which needs no
// bound on their number.
func (s *Store) Totals(ctx context.Context, q usagestore.TotalsQuery) (usagestore.TotalsPage, error) {
	limit := q.PageLimit()
	counters := object{
		"size":    limit + 1,
		"sources": []object{{"counter": object{"terms": object{"field": "charges.counter"}}}},
	}
	if q.After != "" {
		counters["after"] = object{"counter": q.After}
	}
	var answer struct{ Charges struct{ Counters buckets } }
	err := s.sum(ctx, usagestore.Query{TenantID: q.TenantID, From: q.From, To: q.To}, object{
		"charges": object{
			"nested": object{"path": "charges"},
			"aggs":   object{"counters": object{"composite": counters, "aggs": amount}},
		},
	}, &answer)
	if err != nil {
		return usagestore.TotalsPage{}, err
	}
	var page usagestore.TotalsPage
	for _, b := range answer.Charges.Counters.Buckets {
		var key struct{ Counter string }
		if err := json.Unmarshal(b.Key, &key); err != nil {
			return usagestore.TotalsPage{}, fmt.Errorf("elasticsearch: read sums: %w", err)
		}
		page.Sums = append(page.Sums, usagestore.CounterSum{Counter: key.Counter, Amount: int64(b.Amount.Value), Events: b.Count})
	}
	if len(page.Sums) > limit {
		page.Sums, page.Next = page.Sums[:limit], page.Sums[limit-1].Counter
	}
	return page, nil
}

// Days sums by the days of the query's zone.
func (s *Store) Days(ctx context.Context, q usagestore.DaysQuery) ([]usagestore.DaySum, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	counters := object{"terms": object{"field": "charges.counter", "size": usagestore.MaxCounters}, "aggs": amount}
	mine := object{"filter": object{"term": object{"charges.metric": q.Metric}}, "aggs": object{"counters": counters}}
	var answer struct{ Days buckets }
	err := s.sum(ctx, usagestore.Query{TenantID: q.TenantID, From: q.From, To: q.To}, object{
		"days": object{
			"date_histogram": object{"field": "ts", "calendar_interval": "day", "format": "yyyy-MM-dd", "time_zone": q.Zone.String(), "min_doc_count": 1},
			"aggs": object{"charges": object{
				"nested": object{"path": "charges"}, "aggs": object{"mine": mine},
			}},
		},
	}, &answer)
	if err != nil {
		return nil, err
	}
	var sums []usagestore.DaySum
	for _, day := range answer.Days.Buckets {
		found := day.Charges.Mine.Counters
		if found.Other > 0 {
			return nil, fmt.Errorf("elasticsearch: sum by day: %s has more than %d counters of %s", day.Text, usagestore.MaxCounters, q.Metric)
		}
		for _, b := range found.Buckets {
			var counter string
			if err := json.Unmarshal(b.Key, &counter); err != nil {
				return nil, fmt.Errorf("elasticsearch: read sums: %w", err)
			}
			sums = append(sums, usagestore.DaySum{Day: day.Text, Counter: counter, Amount: int64(b.Amount.Value)})
		}
	}
	slices.SortFunc(sums, func(a, b usagestore.DaySum) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Counter, b.Counter))
	})
	return sums, nil
}

// sum asks for aggregations over the events a query selects.
func (s *Store) sum(ctx context.Context, q usagestore.Query, aggregations object, out any) error {
	body, err := json.Marshal(object{
		"size": 0, "track_total_hits": false, "aggs": aggregations,
		"query": object{"bool": object{"filter": filters(q, nil)}},
	})
	if err != nil {
		return fmt.Errorf("encode sum: %w", err)
	}
	yes := true
	res, err := esapi.SearchRequest{
		Index: []string{s.pattern()}, Body: reader(body),
		IgnoreUnavailable: &yes, AllowNoIndices: &yes,
	}.Do(ctx, s.transport)
	var answer struct {
		Aggregations json.RawMessage `json:"aggregations"`
		Shards       struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	if err := finish(res, err, "sum", &answer); err != nil {
		return err
	}
	if answer.Shards.Failed > 0 {
		return fmt.Errorf("elasticsearch: sum: %d shards failed, the answer would have holes", answer.Shards.Failed)
	}
	if answer.Aggregations == nil {
		return nil // there are no indices yet
	}
	if err := json.Unmarshal(answer.Aggregations, out); err != nil {
		return fmt.Errorf("elasticsearch: read sums: %w", err)
	}
	return nil
}
