package routing

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// CheckTarget rejects what asks for another kind of server, and takes the offer to
// change the protocol out of the request.
//
// A tunnel (CONNECT) would pass bytes that no rule sees. OPTIONS * asks about a
// server as a whole, while the gate stands before services, by path. A target
// without a path could not be matched by any rule. Upgrades that would be tunnels
// are not rejected but ignored, as any server may.
func CheckTarget(r *http.Request) *reject.Rejection {
	switch {
	case r.Method == http.MethodConnect:
		return &reject.Rejection{
			// A 405 must name the allowed methods (RFC 9110, section 15.5.6).
			Reason: reject.BadMethod, Allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE",
			Problem: reject.Problem{Status: http.StatusMethodNotAllowed, Title: "Method not allowed", Detail: "The gate opens no tunnels (CONNECT)."},
		}
	case WrongCase(r.Method):
		return &reject.Rejection{Reason: reject.BadMethod, Problem: reject.Problem{
			Status: http.StatusBadRequest, Title: "Bad method",
			Detail: "Methods are case-sensitive: this one is written " + strings.ToUpper(r.Method) + ".",
		}}
	case r.RequestURI == "*":
		return NoService("The target * names no service; ask for a path.")
	}
	ignoreUpgrade(r.Header)
	if detail := badTarget(r); detail != "" {
		return badPath("Bad target", detail)
	}
	return nil
}

// NoService is a 404: no service is meant.
func NoService(detail string) *reject.Rejection {
	return &reject.Rejection{Reason: reject.NoService, Problem: reject.Problem{Status: http.StatusNotFound, Title: "No such service", Detail: detail}}
}

// WrongCase reports a method of HTTP that is not written in capitals. It is another
// method (RFC 9110, section 9.1), which no rule names; a service that accepts it
// would be called past the rules.
func WrongCase(method string) bool {
	if strings.IndexFunc(method, unicode.IsLower) < 0 {
		return false
	}
	switch strings.ToUpper(method) {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// HeaderUpgrade and HeaderHTTP2Settings offer another protocol; canonical as net/http has them.
const (
	HeaderUpgrade       = "Upgrade"
	HeaderHTTP2Settings = "Http2-Settings"
)

// ignoreUpgrade removes the offer of another protocol than WebSocket (RFC 9110,
// section 7.8: a server may ignore it). After Upgrade: h2c requests would follow
// that no rule sees and no identity is taken out of.
func ignoreUpgrade(h http.Header) {
	delete(h, HeaderHTTP2Settings)
	if offered := h[HeaderUpgrade]; len(offered) != 1 || !strings.EqualFold(offered[0], "websocket") {
		delete(h, HeaderUpgrade)
	}
}
