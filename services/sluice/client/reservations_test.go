package client

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The gateway's own answer is tested where it is made.
func TestReservationsAreReleasedAtTheAdminPort(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.EscapedPath() != "/v1/reservations/a%20b/job-1/release" || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"detail":"There is no reservation."}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"job-1","state":"released"}`)
	}))
	defer server.Close()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(reservationsCommand())
		root.SetArgs(append([]string{"reservations", "release", "--admin-url", server.URL, "--token", "t"}, args...))
		root.SetOut(&out)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("a b", "job-1"); err != nil || !strings.Contains(out, `"state": "released"`) {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := run("a b", "job-2"); err == nil || !strings.Contains(err.Error(), "There is no reservation.") {
		t.Errorf("another one: %v", err)
	}
}

// The list is read a page at a time, as far as asked for.
func TestReservationsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.Method != http.MethodGet || r.URL.Path != "/v1/reservations" || query.Get("tenant") != "acme":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"detail":"tenant: must be one"}`)
		case query.Get("cursor") == "":
			_, _ = io.WriteString(w, `{"items":[{"tenantId":"acme","id":"job-1","state":"reserved","reserved":80,"service":"llm","endpoint":"/llm/v1/chat","method":"POST",`+
				`"metrics":["tokens","calls"],"reservedAt":"2026-07-23T12:00:00.000Z","expiresAt":"2026-07-23T12:01:00.000Z"}],"next":"more"}`)
		default:
			_, _ = io.WriteString(w, `{"items":[{"tenantId":"acme","id":"job-`+query.Get("cursor")+query.Get("limit")+`","state":"reserved","reserved":0}]}`)
		}
	}))
	defer server.Close()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(reservationsCommand())
		root.SetArgs(append([]string{"reservations", "list", "--admin-url", server.URL, "--token", "t"}, args...))
		root.SetOut(&out)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--tenant", "acme", "--limit", "5")
	for _, want := range []string{"TENANT", "tokens,calls", "POST /llm/v1/chat", "2026-07-23T12:01:00Z", "job-more4"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q in %s, %v", want, out, err)
		}
	}
	if out, err := run("--tenant", "acme", "--limit", "1", "-o", "json"); err != nil || strings.Contains(out, "job-more") || !strings.Contains(out, `"reserved": 80`) {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := run("--tenant", "other"); err == nil || !strings.Contains(err.Error(), "tenant: must be one") {
		t.Errorf("another one: %v", err)
	}
	if _, err := run("--limit", "0"); err == nil || !strings.Contains(err.Error(), "--limit must be at least 1") {
		t.Errorf("none: %v", err)
	}
}
