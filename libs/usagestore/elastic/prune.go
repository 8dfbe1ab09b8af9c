package elastic

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

// Prune deletes the indices of days before the oldest kept one, by name, and
// returns how many. An index whose name is not exactly a day's is left alone.
func (s *Store) Prune(ctx context.Context, keepDays int, now time.Time) (n int, err error) {
	res, err := esapi.CatIndicesRequest{Index: []string{s.pattern()}, Format: "json", H: []string{"index"}, ExpandWildcards: "all"}.Do(ctx, s.transport)
	var indices []struct {
		Index string `json:"index"`
	}
	if err := finish(res, err, "list indices", &indices); err != nil {
		return 0, err
	}
	oldest := usagestore.OldestKept(keepDays, now)
	for _, i := range indices {
		day, err := time.Parse(dayLayout, strings.TrimPrefix(i.Index, s.cfg.IndexPrefix+"-"))
		if err != nil || !day.Before(oldest) {
			continue
		}
		res, err := esapi.IndicesDeleteRequest{Index: []string{i.Index}}.Do(ctx, s.transport)
		err = finish(res, err, "delete index "+i.Index, nil)
		if isStatus(err, http.StatusNotFound) {
			continue // another instance was faster
		}
		if err != nil {
			return n, fmt.Errorf("prune: %w", err)
		}
		n++
	}
	return n, nil
}
