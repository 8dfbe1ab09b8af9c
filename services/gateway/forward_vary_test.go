package gateway

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What varies by who asks tells caches in front what clients prove it with.
func TestVaryNamesTheCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vary, want []string }{
		{nil, nil},
		{[]string{"Accept, Origin"}, []string{"Accept, Origin"}},
		{[]string{"Accept", "origin,x-tenant-id"}, []string{"Accept", "origin,x-tenant-id", "Authorization, X-Api-Key"}},
		{[]string{"X-User-Id , X-Application-Id"}, []string{"X-User-Id , X-Application-Id", "Authorization, X-Api-Key"}},
	} {
		h := http.Header{}
		shared := append(make([]string, 0, 8), c.vary...)
		if c.vary != nil {
			h["Vary"] = shared
		}
		varyByCredential(h)
		if diff := cmp.Diff(c.want, h["Vary"]); diff != "" {
			t.Errorf("%q: %s", c.vary, diff)
		}
		if again := shared[:cap(shared)]; len(c.vary) > 0 && again[len(c.vary)] != "" {
			t.Errorf("%q: the array of the stored answer was written to", c.vary)
		}
	}
}
