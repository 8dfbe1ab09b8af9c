package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// addVary adds to a response's Vary what caches in front of the gate must
// distinguish responses by and the service did not name: the request headers of
// the route's policy, and, where the response varies by an identity, the fields by
// which clients prove theirs. Such caches never see the identity, and would give
// one tenant's response to another (RFC 9110, section 12.5.5).
func addVary(h http.Header, keyed []string) {
	if len(h["Vary"]) == 0 && len(keyed) == 0 || httpcache.VariesByAll(h) {
		return
	}
	var missing []string
	for _, name := range keyed {
		if !variesBy(h, name) {
			missing = append(missing, name)
		}
	}
	proof := [...]string{identify.HeaderAuthorization, identify.HeaderAPIKey}
	for _, name := range [...]string{identify.HeaderTenant, identify.HeaderUser, identify.HeaderApplication, identify.HeaderAuthorization, identify.HeaderAPIKey} {
		if !variesBy(h, name) && !slices.Contains(keyed, name) {
			continue
		}
		for _, credential := range proof {
			if !variesBy(h, credential) && !slices.Contains(missing, credential) {
				missing = append(missing, credential)
			}
		}
		break
	}
	if len(missing) > 0 {
		h["Vary"] = append(slices.Clip(h["Vary"]), strings.Join(missing, ", "))
	}
}

// variesBy reports whether a response's Vary names a header.
func variesBy(h http.Header, name string) bool {
	for _, line := range h["Vary"] {
		for named := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(named, " \t"), name) {
				return true
			}
		}
	}
	return false
}
