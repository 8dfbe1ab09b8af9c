package catalog

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func (v *validation) upstreams(upstreams []catalog.Upstream) {
	if n := len(upstreams); n < 1 || n > MaxUpstreams {
		v.add("upstreams", "must be 1 to %d, not %d", MaxUpstreams, n)
		return
	}
	taking := false
	for i, u := range upstreams {
		at := fmt.Sprintf("upstreams[%d].", i)
		if problem := upstreamURL(u.URL); problem != "" {
			v.add(at+"url", "%s", problem)
		}
		if utf8.RuneCountInString(u.Region) > MaxNameLength {
			v.add(at+"region", "must have at most %d characters", MaxNameLength)
		}
		if u.Weight != nil && (*u.Weight < 0 || *u.Weight > MaxWeight) {
			v.add(at+"weight", "must be from 0 to %d, not %d", MaxWeight, *u.Weight)
		}
		taking = taking || u.Weight == nil || *u.Weight > 0
	}
	if !taking {
		v.add("upstreams", "must hold one with a weight above 0, or nothing is forwarded")
	}
}

// upstreamURL says what is wrong with an upstream, or nothing. Credentials are
// refused: the catalog is shown to readers and carried to every gateway.
func upstreamURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil: // the error repeats the URL, and with it a password
		return "must be a URL such as http://payments:8080"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "must name a host, such as http://payments:8080"
	case u.User != nil:
		return "must not carry a user or password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(raw, "#"):
		return "must carry no query and no fragment"
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "must have a port from 1 to 65535"
		}
	}
	return ""
}
