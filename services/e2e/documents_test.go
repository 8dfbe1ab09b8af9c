//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
)

// awaitEveryDecision waits until each answered decision is a document, a dead
// letter or a counted drop, and checks that no id stands in two documents.
func (s *privateStack) awaitEveryDecision(l *load) {
	t := s.t
	t.Helper()
	var missing []string
	servertest.Eventually(t, 2*time.Minute, "every answered decision to be a document, a dead letter or a counted drop", func() bool {
		found := s.documents(t)
		missing = nil
		for id := range l.answered {
			if found[id] == 0 {
				missing = append(missing, id)
			}
		}
		return float64(len(missing)) <= float64(len(s.letters(t, missing)))+s.drops()
	})
	for id, n := range s.documents(t) {
		if n > 1 {
			t.Errorf("decision %s has %d documents", id, n)
		}
	}
	t.Logf("%d decisions answered, %d of them no document", len(l.answered), len(missing))
}

// drops is what the spools of the running gateways dropped.
func (s *stack) drops() (sum float64) {
	for _, g := range s.gates {
		sum += max(0, g.metric("sluice_spool_dropped_total"))
	}
	return sum
}

// documents reads decision id → number of documents from the index itself.
func (s *stack) documents(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	var after []any
	for {
		query := map[string]any{
			"size": 5000, "_source": []string{"id"}, "query": map[string]any{"match_all": map[string]any{}},
			"sort": []any{map[string]any{"id": "asc"}, map[string]any{"_index": "asc"}},
		}
		if after != nil {
			query["search_after"] = after
		}
		url := s.search.URL + "/" + s.search.IndexPrefix + "*"
		if got := send("POST", url+"/_refresh", nil, nil); got.code != http.StatusOK {
			return found
		}
		got := send("POST", url+"/_search", nil, query)
		if got.code != http.StatusOK {
			return found
		}
		var page struct {
			Hits struct {
				Hits []struct {
					Source struct{ ID string } `json:"_source"`
					Sort   []any               `json:"sort"`
				} `json:"hits"`
			} `json:"hits"`
		}
		if err := json.Unmarshal([]byte(got.body), &page); err != nil {
			t.Fatal(err)
		}
		hits := page.Hits.Hits
		if len(hits) == 0 {
			return found
		}
		for _, hit := range hits {
			found[hit.Source.ID]++
		}
		after = hits[len(hits)-1].Sort
	}
}

// letters reads which of the ids lie in the dead-letter topic.
func (s *stack) letters(t *testing.T, ids []string) map[string]bool {
	t.Helper()
	wanted, found := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	if len(ids) == 0 {
		return found
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		s.topicPrefix + deadletters.Topic: {0: kgo.NewOffset().AtStart()},
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	deadline := time.Now().Add(2 * time.Second)
	for time.Now().Before(deadline) {
		ctx, cancel := contextFor(500 * time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.Empty() {
			break
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var letter deadletters.Letter
			if json.Unmarshal(r.Value, &letter) == nil && wanted[letter.EventID] {
				found[letter.EventID] = true
			}
		})
	}
	return found
}

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
