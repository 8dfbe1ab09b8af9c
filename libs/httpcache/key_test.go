package httpcache

import (
	"net/http"
	"testing"
)

// Headers that identify a caller are compared byte by byte, also where their values look like lists.
func TestIdentitiesThatLookLikeLists(t *testing.T) {
	t.Parallel()
	c := New(Options{Identity: []string{"X-Tenant-Id"}, Credentials: []string{"Authorization", "X-Api-Key"}})
	for _, name := range []string{"X-Tenant-Id", "X-Api-Key", "Authorization", "Cookie"} {
		one, other := http.Header{name: {"cn=a,o=b"}}, http.Header{name: {"cn=a, o=b"}}
		first, second := &Lookup{cache: c, header: one}, &Lookup{cache: c, header: other}
		s := &storedResponse{incarnation: "i", vary: []string{name}, varyValues: []string{c.fieldValue(one, name)}}
		if !first.matches(s) || second.matches(s) || first.variant(s, "k") == second.variant(s, "k") {
			t.Errorf("%s: one response for %v and %v", name, one, other)
		}
	}
}
