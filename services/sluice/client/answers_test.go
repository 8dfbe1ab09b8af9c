package client

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/sluice/client/cache"

	"github.com/spf13/cobra"
)

// whenAnswered runs a command against a control plane that gives one answer to all;
// status 0 is none, of a connection that breaks.
func whenAnswered(t *testing.T, status int, body string, args ...string) (stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	var errs bytes.Buffer
	root := &cobra.Command{Use: "sluice", SilenceErrors: true}
	root.AddCommand(append(Commands(), cache.Command())...)
	root.SetArgs(append(args, "--url", server.URL, "--token", "t"))
	root.SetOut(&bytes.Buffer{})
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return errs.String(), err
}

// A top-up is to be repeated by its key where nobody knows what became of it.
func TestTopUpSaysHowToRepeatWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	for status, unknown := range map[int]bool{0: true, 201: false, 400: false, 404: false, 409: false, 422: false, 500: true, 503: true} {
		topUp := []string{"topups", "create", "acme", "m", "--amount", "1"}
		said, err := whenAnswered(t, status, "{}", topUp...)
		if (err == nil) != (status == 201) || strings.Contains(said, "to repeat it: --key ") != unknown {
			t.Errorf("%d: %v, says %q", status, err, said)
		}
		if said, _ = whenAnswered(t, status, "{}", append(topUp, "--key", "mine")...); said != "" {
			t.Errorf("%d: says %q of a key that was given", status, said)
		}
	}
}

// What the control plane says of a purge's fields names the flags they came by.
func TestPurgeNamesItsFlags(t *testing.T) {
	t.Parallel()
	const refusal = `{"errors":[{"field":"url","message":"must lie under the prefix"}]}`
	if _, err := whenAnswered(t, 400, refusal, "cache", "purge", "shop", "--path", "/x"); err == nil || !strings.HasSuffix(err.Error(), "\n  --path: must lie under the prefix") {
		t.Errorf("says %v", err)
	}
}
