package gateway

import (
	"net/http"
	"strings"
	"unicode"
)

// proxied refuses what asks for another kind of server. A tunnel (CONNECT)
// would pass bytes that no rule sees, and OPTIONS * asks about a server as a
// whole, while the gate is none: it stands before services, by path. What else
// names no path could not be held against any rule. Upgrades that would be
// tunnels as well are not refused but ignored, as any server may.
func (g *gate) proxied(x *exchange) bool {
	switch {
	case x.r.Method == http.MethodConnect:
		// A 405 must name what is allowed (RFC 9110, section 15.5.6).
		x.w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE")
		return g.refuse(x, refusedMethod, &problem{status: http.StatusMethodNotAllowed, title: "Method not allowed", detail: "The gate opens no tunnels (CONNECT)."})
	case miscased(x.r.Method):
		return g.refuse(x, refusedMethod, &problem{status: http.StatusBadRequest, title: "Bad method", detail: "Methods are case-sensitive: this one is written " + strings.ToUpper(x.r.Method) + "."})
	case x.r.RequestURI == "*":
		return g.refuse(x, refusedNoService, &problem{status: http.StatusNotFound, title: "No such service", detail: "The target * names no service; ask for a path."})
	}
	ignoreUpgrade(x.r.Header)
	if detail := misaimed(x.r); detail != "" {
		return g.refuse(x, refusedBadPath, &problem{status: http.StatusBadRequest, title: "Bad target", detail: detail})
	}
	return true
}

// miscased reports a method of HTTP in other letters than capitals. It is another
// method (RFC 9110, section 9.1), which no rule names; services that take it for
// the one it looks like would be asked past the rules of that.
func miscased(method string) bool {
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

const (
	headerUpgrade       = "Upgrade"
	headerHTTP2Settings = "Http2-Settings" // canonical, as net/http has it
	upgradeWebSocket    = "websocket"
)

// ignoreUpgrade takes off the offer to go on in another protocol than WebSocket
// (RFC 9110, section 7.8: a server may ignore it). After Upgrade: h2c requests
// would follow that no rule sees and no identity is taken out of.
func ignoreUpgrade(h http.Header) {
	delete(h, headerHTTP2Settings)
	if offered := h[headerUpgrade]; len(offered) != 1 || !strings.EqualFold(offered[0], upgradeWebSocket) {
		delete(h, headerUpgrade)
	}
}
