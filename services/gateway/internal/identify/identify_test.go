package identify

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestTrustIsByNetwork(t *testing.T) {
	t.Parallel()
	i := Identifier{Keys: NewKeys(), Trusted: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for remote, want := range map[string]bool{
		"10.1.2.3:4": true, "10.2.2.3:4": false, "[fd00::1]:4": true, "[::ffff:10.1.2.3]:4": true, "[2001:db8::1]:4": false, "": false, "@": false,
	} {
		c, rejected := i.Identify(&http.Request{RemoteAddr: remote}, time.Time{})
		if rejected != nil || c.TrustedPeer != want {
			t.Errorf("%s is trusted: %v (%v), want %v", remote, c.TrustedPeer, rejected, want)
		}
	}
}
