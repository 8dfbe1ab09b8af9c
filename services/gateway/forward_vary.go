package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/httpcache"
)

// tellVary adds to an answer's Vary what caches in front of the gate must tell
// answers apart by, and the service did not name: the request headers that its
// route is keyed by, and, where it varies by an identity, the fields that clients
// prove it with. Such caches never see the identity, and would give one tenant's
// answer to another (RFC 9110, section 12.5.5).
func tellVary(h http.Header, keyed []string) {
	if len(h["Vary"]) == 0 && len(keyed) == 0 || httpcache.VariesByAll(h) {
		return
	}
	var missing []string
	for _, name := range keyed {
		if !variesBy(h, name) {
			missing = append(missing, name)
		}
	}
	proof := [...]string{headerAuthorization, headerAPIKey}
	for _, name := range [...]string{headerTenant, headerUser, headerApplication, headerAuthorization, headerAPIKey} {
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

// variesBy reports whether an answer's Vary names a header.
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
