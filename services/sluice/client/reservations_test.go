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
