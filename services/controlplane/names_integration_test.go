//go:build integration

package controlplane_test

import (
	"strings"
	"testing"
)

// A name with a space at its end that was written when it still could be is
// kept: its rule can be changed, turned off and deleted. No other becomes one.
func TestSpacedNamesOfOldStayChangeable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/rules", body: ruleWith(`"value":"*"`, `"value":"acme"`)})
	if _, err := w.db.Exec(t.Context(), `UPDATE rules SET key = 'a ', document = jsonb_set(jsonb_set(document, '{id}', '"a "'), '{subject,value}', '"acme "')`); err != nil {
		t.Fatal(err)
	}
	got := w.must(t, 200, request{method: "GET", path: "/v1/rules/a%20"})
	w.put(t, 200, "/v1/rules/a%20", got.Header().Get("ETag"), got.Body.String())
	w.put(t, 200, "/v1/rules/a%20", "*", strings.Replace(got.Body.String(), `"enforce"`, `"off"`, 1))
	refused := w.put(t, 400, "/v1/rules/a%20", "*", strings.Replace(got.Body.String(), `"acme "`, `" acme"`, 1)).problem(t)
	if len(refused.Errors) != 1 || refused.Errors[0].Field != "subject.value" {
		t.Errorf("names %+v", refused.Errors)
	}
	w.put(t, 200, "/v1/rules/a%20", "*", strings.Replace(got.Body.String(), `"acme "`, `"acme"`, 1))
	w.put(t, 400, "/v1/rules/a%20", "*", got.Body.String())
	w.delete(t, 204, "/v1/rules/a%20", "*")
}
