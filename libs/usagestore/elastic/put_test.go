package elastic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func TestOnlyTheDocumentsOwnFaultIsPermanent(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"status":201}`: "stored",
		`{"status":409,"error":{"type":"version_conflict_engine_exception"}}`:                              "stored",
		`{"status":400,"error":{"type":"mapper_parsing_exception","reason":"r"}}`:                          "refused",
		`{"status":400,"error":{"type":"document_parsing_exception","reason":"r"}}`:                        "refused",
		`{"status":400,"error":{"type":"illegal_argument_exception","reason":"immense term"}}`:             "refused",
		`{"status":400,"error":{"type":"validation_exception","reason":"maximum shards open"}}`:            "again",
		`{"status":400,"error":{"type":"index_closed_exception","reason":"closed"}}`:                       "again",
		`{"status":403,"error":{"type":"cluster_block_exception","reason":"disk flood stage, read only"}}`: "again",
		`{"status":404,"error":{"type":"index_not_found_exception"}}`:                                      "again",
		`{"status":429,"error":{"type":"es_rejected_execution_exception"}}`:                                "again",
		`{"status":503,"error":{"type":"unavailable_shards_exception"}}`:                                   "again",
		`{}`: "again",
	} {
		var item bulkItem
		if err := json.Unmarshal([]byte(answer), &item); err != nil {
			t.Fatal(err)
		}
		got := "stored"
		if err := item.itemError(); err != nil && err.Permanent {
			got = "refused"
		} else if err != nil {
			got = "again"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}

func TestIdentityOfADocumentIsTenantAndID(t *testing.T) {
	t.Parallel()
	ids := map[string]string{}
	for _, e := range []usage.Event{
		{TenantID: "a", ID: "bc"}, {TenantID: "ab", ID: "c"}, {TenantID: "", ID: "abc"}, {TenantID: "abc", ID: ""}, {TenantID: "a", ID: "b"},
	} {
		id := documentID(e)
		if other, ok := ids[id]; ok {
			t.Errorf("%q/%q has the id of %s", e.TenantID, e.ID, other)
		}
		ids[id] = e.TenantID + "/" + e.ID
	}
}

func TestIndexIsTheDayInUTC(t *testing.T) {
	t.Parallel()
	s, err := New(Config{URL: "http://127.0.0.1:9200"})
	if err != nil {
		t.Fatal(err)
	}
	e := usage.Event{TS: time.Date(2026, 7, 24, 1, 0, 0, 0, time.FixedZone("", 3*3600))}
	if got := s.index(e); got != "ratelimit-usage-2026.07.23" {
		t.Fatal(got)
	}
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"no url":       {},
		"no scheme":    {URL: "localhost:9200"},
		"credentials":  {URL: "http://u:secret@h:1"},
		"flavor":       {URL: "http://h", Flavor: "solr"},
		"upper case":   {URL: "http://h", IndexPrefix: "Usage"},
		"underscore":   {URL: "http://h", IndexPrefix: "_usage"},
		"wildcard":     {URL: "http://h", IndexPrefix: "usage*"},
		"control char": {URL: "http://h\x01"},
	} {
		_, err := New(c)
		if err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

func TestCredentialsAreSentAsConfigured(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"":                   {},
		"Basic dTpw":         {Username: "u", Password: "p"},
		"ApiKey c2VjcmV0OjE": {APIKey: "c2VjcmV0OjE"},
	} {
		got := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got <- r.Header.Get("Authorization")
			w.WriteHeader(http.StatusOK)
		}))
		t.Cleanup(server.Close)
		cfg.URL = server.URL
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if header := <-got; !strings.EqualFold(header, want) { // a scheme's case does not matter
			t.Errorf("sent %q, want %q", header, want)
		}
	}
}
