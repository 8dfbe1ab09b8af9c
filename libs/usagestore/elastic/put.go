package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// maxBulkBytes keeps a request well below the server's default of 100 MB and
// proxies' of 10 MB.
const maxBulkBytes = 4 << 20

// item is one event on its way: its place in the results and its two lines.
type item struct {
	place int
	lines []byte
}

// Put sends events by _bulk, op create.
func (s *Store) Put(ctx context.Context, events []usage.Event) ([]usagestore.Result, error) {
	if err := s.Setup(ctx); err != nil {
		return nil, err
	}
	results := make([]usagestore.Result, len(events))
	var batch []item
	size := 0
	for i, e := range events {
		lines, err := s.lines(usagestore.Canonical(e))
		if err != nil {
			results[i].Err = &usagestore.ItemError{Permanent: true, Kind: "not_encodable", Detail: err.Error()}
			continue
		}
		if size > 0 && size+len(lines) > maxBulkBytes {
			if err := s.bulk(ctx, batch, results); err != nil {
				return nil, err
			}
			batch, size = batch[:0], 0
		}
		batch = append(batch, item{place: i, lines: lines})
		size += len(lines)
	}
	return results, s.bulk(ctx, batch, results)
}

func (s *Store) lines(e usage.Event) ([]byte, error) {
	action, err := json.Marshal(map[string]any{"create": map[string]string{"_index": s.index(e), "_id": documentID(e)}})
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s\n%s\n", action, document), nil
}

// bulk sends one request, halved for as long as the server finds it too large.
func (s *Store) bulk(ctx context.Context, items []item, results []usagestore.Result) error {
	if len(items) == 0 {
		return nil
	}
	var body bytes.Buffer
	for _, it := range items {
		body.Write(it.lines)
	}
	var answer bulkAnswer
	res, err := esapi.BulkRequest{
		Body:       &body,
		FilterPath: []string{"errors", "items.*.status", "items.*.error.type", "items.*.error.reason", "items.*.error.caused_by.reason"},
	}.Do(ctx, s.transport)
	err = finish(res, err, "bulk", &answer)
	switch {
	case isStatus(err, http.StatusRequestEntityTooLarge) && len(items) == 1:
		results[items[0].place].Err = &usagestore.ItemError{Permanent: true, Kind: "too_large", Detail: err.Error()}
		return nil
	case isStatus(err, http.StatusRequestEntityTooLarge):
		half := len(items) / 2
		if err := s.bulk(ctx, items[:half], results); err != nil {
			return err
		}
		return s.bulk(ctx, items[half:], results)
	case err != nil:
		return err
	case len(answer.Items) != len(items):
		return fmt.Errorf("elasticsearch: bulk of %d items was answered with %d", len(items), len(answer.Items))
	}
	for i, it := range items {
		results[it.place].Err = answer.Items[i].Create.itemError()
	}
	return nil
}

type bulkAnswer struct {
	Items []struct {
		Create bulkItem `json:"create"`
	} `json:"items"`
}

type bulkItem struct {
	Status int `json:"status"`
	Error  struct {
		Type     string `json:"type"`
		Reason   string `json:"reason"`
		CausedBy struct {
			Reason string `json:"reason"`
		} `json:"caused_by"`
	} `json:"error"`
}

// notTheDocument are kinds of 400 that say nothing against the document.
var notTheDocument = map[string]bool{
	"validation_exception":          true, // the cluster's limit of shards
	"index_closed_exception":        true,
	"illegal_state_exception":       true,
	"invalid_index_name_exception":  true,
	"invalid_index_template":        true,
	"index_template_missing":        true,
	"resource_already_exists_error": true,
}

func (b bulkItem) itemError() *usagestore.ItemError {
	if b.Status/100 == 2 || b.Status == http.StatusConflict { // 409: there since an earlier Put
		return nil
	}
	detail := b.Error.Reason
	if b.Error.CausedBy.Reason != "" {
		detail += ": " + b.Error.CausedBy.Reason
	}
	kind := b.Error.Type
	if kind == "" {
		kind = fmt.Sprintf("status_%d", b.Status)
	}
	return &usagestore.ItemError{
		Permanent: b.Status == http.StatusBadRequest && !notTheDocument[kind],
		Kind:      kind,
		Detail:    detail,
	}
}

func reader(b []byte) io.Reader { return bytes.NewReader(b) }
