package identify

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Identifier identifies requests. It takes no lock and waits for nothing.
type Identifier struct {
	// Trusted are the peers whose identity headers are believed.
	Trusted []netip.Prefix
	Keys    *Keys
	// Tokens is nil where no issuer is configured.
	Tokens Verifier
}

// Identify finds out whose request it is, or why it is rejected.
func (i *Identifier) Identify(r *http.Request, now time.Time) (c Caller, rejected *reject.Rejection) {
	c.TrustedPeer = i.trusts(r.RemoteAddr)
	presented, bad := presentedKey(r.Header)
	if bad == "" && c.TrustedPeer {
		c.Cost, c.CostStated, bad = statedCost(r.Header)
	}
	if bad != "" {
		return c, badHeader(bad)
	}
	if presented != "" {
		c.Identity, rejected = i.byKey(presented, now)
		return c, rejected
	}
	c.Identity, rejected = byToken(i.Tokens, r.Header)
	if rejected != nil || c.Token != "" || !c.TrustedPeer {
		return c, rejected
	}
	for _, f := range [...]struct {
		header string
		value  *string
	}{{HeaderTenant, &c.Tenant}, {HeaderUser, &c.User}, {HeaderApplication, &c.Application}} {
		if *f.value, bad = single(r.Header, f.header); bad != "" {
			return c, badHeader(bad)
		}
	}
	return c, nil
}

// byKey takes the identity of an API key.
func (i *Identifier) byKey(presented string, now time.Time) (Identity, *reject.Rejection) {
	key := i.Keys.Find(presented)
	switch {
	case key == nil:
		return Identity{}, &reject.Rejection{
			Reason: reject.UnknownKey, Challenge: reject.InvalidToken,
			Problem: reject.Problem{Status: http.StatusUnauthorized, Title: "Unknown API key"},
		}
	case key.Status != keys.StatusActive:
		return Identity{}, keyRefused("The API key is " + key.Status + ".")
	case key.Expired(now):
		return Identity{}, keyRefused("The API key is expired.")
	}
	return Identity{Tenant: key.Tenant, User: key.User, Application: key.Application, Key: key}, nil
}

func keyRefused(detail string) *reject.Rejection {
	return &reject.Rejection{
		Reason:  reject.KeyRefused,
		Problem: reject.Problem{Type: reject.BadKey, Status: http.StatusForbidden, Title: "API key refused", Detail: detail},
	}
}

// trusts reports whether the peer may name identities.
func (i *Identifier) trusts(remote string) bool {
	if len(i.Trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap()
	for _, p := range i.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
