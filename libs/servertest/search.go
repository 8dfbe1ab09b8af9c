package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
)

// SearchServer is a test's share of the search server.
type SearchServer struct {
	// URL is the base address, without a slash at its end.
	URL string
	// Flavor is "elasticsearch" or "opensearch".
	Flavor string
	// IndexPrefix ("t0123456789ab-") begins the names of the indices and templates the test makes.
	IndexPrefix string
}

// Search returns the shared search server and an index prefix of the test's own. Indices and index templates whose name
// begins with it are deleted after the test.
func Search(t testing.TB) SearchServer {
	t.Helper()
	s := SearchServer{
		URL:         strings.TrimRight(mustEnv(t, withservers.EnvSearch), "/"),
		Flavor:      mustEnv(t, withservers.EnvSearchFlavor),
		IndexPrefix: unique() + "-",
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		if err := s.deleteAll(ctx); err != nil {
			t.Errorf("delete indices %s*: %v", s.IndexPrefix, err)
		}
	})
	return s
}

// deleteAll names each index: a wildcard in a delete is refused by Elasticsearch's defaults.
func (s SearchServer) deleteAll(ctx context.Context) error {
	raw, err := call(ctx, http.MethodGet, s.URL+"/_cat/indices/"+s.IndexPrefix+"*?format=json&h=index&expand_wildcards=all")
	if err != nil {
		return err
	}
	var indices []struct {
		Index string `json:"index"`
	}
	if err := json.Unmarshal(raw, &indices); err != nil {
		return fmt.Errorf("list indices: %w", err)
	}
	for _, i := range indices {
		if _, err := call(ctx, http.MethodDelete, s.URL+"/"+i.Index); err != nil {
			return err
		}
	}
	_, err = call(ctx, http.MethodDelete, s.URL+"/_index_template/"+s.IndexPrefix+"*")
	return err
}

// call returns the body of a 2xx answer; 404 is one too, since what is to be deleted may be gone.
func call(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // no idle connection: the test may look for leaked goroutines
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, body)
	}
	return body, nil
}
