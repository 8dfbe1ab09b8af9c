package controlplane_test

import (
	"net/http"
	"strings"
	"testing"
)

// section is the part of the page about one operation or schema.
func section(t *testing.T, page, id string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<h3 id="`+id+`">`)
	if !found {
		t.Fatalf("the page has no section %s", id)
	}
	part, _, _ := strings.Cut(rest, "<h3")
	return part
}

func TestDocsShowWhatIsSentAndAnswered(t *testing.T) {
	t.Parallel()
	got := request{method: "GET", path: "/docs", token: "-"}.do(t, newAPI(t, ""))
	if got.Code != http.StatusOK {
		t.Fatalf("answers %d", got.Code)
	}
	page := got.Body.String()
	if !strings.Contains(page, "Authorization: Bearer") {
		t.Error("the page does not say how to send a token")
	}
	for id, says := range map[string][]string{
		"create-rule":     {"Request body", "<code>limit.window</code>", "<code>subject.kind</code>", "string, required", "<code>201</code>", "<code>409</code>", "#schema-Rule", "Of quotas: renewing, the default"},
		"put-service":     {"<code>upstreams[].url</code>", "list of objects, required", "<code>201</code>", "<code>412</code>", "If-None-Match"},
		"patch-key":       {"active | blocked | revoked", "time (RFC 3339)", "403", "<code>428</code>"},
		"delete-key":      {"<code>204</code>", "401", "PATCH"},
		"list-usage":      {"#schema-PageEvent", "Only this decision"},
		"delete-override": {"Delete an override", "<code>503</code>"},
		"schema-PageRule": {"<code>items[].limit.limit</code>", "<code>next</code>"},
		"schema-Problem":  {"<code>errors[].field</code>"},
	} {
		part := section(t, page, id)
		for _, s := range says {
			if !strings.Contains(part, s) {
				t.Errorf("section %s does not say %q:\n%s", id, s, part)
			}
		}
	}
	for _, id := range []string{"delete-rule", "delete-key", "patch-key", "put-key"} {
		if strings.Contains(section(t, page, id), "If-None-Match</code>") {
			t.Errorf("section %s lists If-None-Match, which it refuses", id)
		}
	}
}
