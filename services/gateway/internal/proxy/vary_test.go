package proxy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Caches in front are told what answers of the route are told apart by, and,
// where that is who asks, what clients prove it with.
func TestVaryTellsCachesInFront(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vary, keyed, want []string }{
		{},
		{vary: []string{"Accept, Origin"}, want: []string{"Accept, Origin"}},
		{vary: []string{"Accept", "origin,x-tenant-id"}, want: []string{"Accept", "origin,x-tenant-id", "Authorization, X-Api-Key"}},
		{vary: []string{"X-User-Id , X-Application-Id"}, want: []string{"X-User-Id , X-Application-Id", "Authorization, X-Api-Key"}},
		{vary: []string{"authorization"}, want: []string{"authorization", "X-Api-Key"}},
		{keyed: []string{"X-Region"}, want: []string{"X-Region"}},
		{vary: []string{"Accept"}, keyed: []string{"Accept", "X-Region"}, want: []string{"Accept", "X-Region"}},
		{vary: []string{"accept,X-REGION"}, keyed: []string{"X-Region"}, want: []string{"accept,X-REGION"}},
		{keyed: []string{"X-Tenant-Id"}, want: []string{"X-Tenant-Id, Authorization, X-Api-Key"}},
		{vary: []string{"Authorization"}, keyed: []string{"X-Api-Key"}, want: []string{"Authorization", "X-Api-Key"}},
		{vary: []string{"*"}, keyed: []string{"X-Tenant-Id"}, want: []string{"*"}},
	} {
		h := http.Header{}
		shared := append(make([]string, 0, 8), c.vary...)
		if c.vary != nil {
			h["Vary"] = shared
		}
		addVary(h, c.keyed)
		if diff := cmp.Diff(c.want, h["Vary"]); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		if again := shared[:cap(shared)]; len(c.vary) > 0 && again[len(c.vary)] != "" {
			t.Errorf("%+v: the array of the stored answer was written to", c)
		}
	}
}
