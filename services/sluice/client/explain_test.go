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

const explainBody = `{"request":{"method":"GET","path":"/demo/hello","service":"demo","endpoint":"GET /demo/hello","cached":true,"cost":2},
"rules":[{"id":"a","version":7,"subject":{"kind":"tenant","value":"*"},"metric":"m","horizon":"1m0s","mode":"enforce","result":"won"},
{"id":"b","version":8,"subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo"},"metric":"m","horizon":"1m0s","mode":"shadow","result":"lost","by":"a","because":"smaller id"}],
"winners":[{"id":"a","mode":"enforce","subject":"acme","metric":"m","counter":"{t:acme}:t::m:gcra:60","algorithm":"GCRA","override":"tenant:acme:m","cost":2,"limit":30,"burst":30,"countCached":false,"remaining":1,"resetSeconds":12.4,"retryAfter":13,"wouldPass":false},
{"id":"w","mode":"enforce","metric":"m","algorithm":"PREPAID_QUOTA","cost":1,"limit":7,"remaining":3,"wouldPass":true},
{"id":"b","mode":"enforce","metric":"m","algorithm":"GCRA","cost":1,"limit":30,"burst":50,"remaining":45,"resetSeconds":2,"wouldPass":true},
{"id":"r","mode":"enforce","metric":"m","algorithm":"RENEWING_QUOTA","cost":1,"limit":120,"carried":20,"remaining":119,"wouldPass":true},
{"id":"c","mode":"enforce","metric":"m","unreadable":"limit.algorithm is new","onStoreLoss":"closed"}],"unread":["c","d"],
"wouldPass":false,"status":429,"retryAfter":13}`

func TestExplainPrintsWhatTheGatewaySays(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/explain" || r.Header.Get("Authorization") != "Bearer t" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		asked = string(body)
		if strings.Contains(asked, "byToken") {
			_, _ = io.WriteString(w, `{"request":{"method":"GET","path":"/demo/hello","service":"demo","demands":"key","cost":2},"refused":{"status":401,"title":"API key required","detail":"Send it."},"wouldPass":false,"note":"cost 2 is dear"}`)
			return
		}
		_, _ = io.WriteString(w, explainBody)
	}))
	defer server.Close()
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := &cobra.Command{Use: "sluice", SilenceErrors: true}
		root.AddCommand(explainCommand())
		root.SetArgs(append([]string{"explain", "--admin-url", server.URL, "--token", "t", "--path", "/demo/hello", "--tenant", "acme"}, args...))
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	table := run("--cost", "2")
	for _, says := range []string{
		"GET /demo/hello → service demo, endpoint GET /demo/hello, cost 2", "lost to a: smaller id (shadow)",
		"1 of 30, reset in 13 s", "3 of 7  ", "45 of burst 50, limit 30, reset in 2 s", "119 of 120, 20 carried over", "tenant:acme:m", "no: costs 2, in 13 s; a stored answer is free", "would be denied: 429, Retry-After 13 or a little more",
		"cannot be read there; onStoreLoss closed holds", "this gateway cannot read these rules: c, d",
	} {
		if !strings.Contains(table, says) {
			t.Errorf("%q is not in\n%s", says, table)
		}
	}
	if asked != `{"tenantId":"acme","path":"/demo/hello","cost":2}` {
		t.Errorf("asked %s", asked)
	}
	refused := run("--by-token")
	for _, says := range []string{"cost 2, demands key", "would be answered 401 before any rule is asked: API key required. Send it.\ncost 2 is dear\n"} {
		if !strings.Contains(refused, says) {
			t.Errorf("%q is not in\n%s", says, refused)
		}
	}
	if text := run("-o", "json"); !strings.Contains(text, `"version": 8`) {
		t.Errorf("JSON is not the gateway's own: %s", text)
	}
}

func TestExplainSaysHowItWouldBeDenied(t *testing.T) {
	t.Parallel()
	no := new(bool)
	for says, a := range map[string]explainAnswer{
		"would be denied": {WouldPass: no},
		"would be denied: 429 without Retry-After, as waiting does not help":                       {WouldPass: no, Status: 429},
		"would be denied: 429, Retry-After 30 or a little more, so that not all come back at once": {WouldPass: no, Status: 429, RetryAfter: 30},
		"would be denied: 403":                      {WouldPass: no, Status: 403},
		"not known whether it would pass: no Redis": {Trouble: "no Redis"},
	} {
		if got := a.outcome(); got != says {
			t.Errorf("says %q, want %q", got, says)
		}
	}
}
