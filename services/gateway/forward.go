package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// statusClientGone is what events carry when the client went away before the
// upstream answered (nginx's 499); nobody reads the answer itself.
const statusClientGone = 499

// copyBufferBytes is the size of the buffers that answers stream through.
const copyBufferBytes = 32 << 10

// newTransport returns the one transport that all services share. It follows
// no proxy settings of the environment and never touches an answer's coding.
func newTransport(c UpstreamConfig) *http.Transport {
	dialer := &net.Dialer{Timeout: c.DialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   c.DialTimeout,
		ResponseHeaderTimeout: c.ResponseTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       c.IdleTimeout,
		MaxIdleConnsPerHost:   c.MaxIdlePerHost,
		DisableCompression:    true,
	}
}

func (g *gate) newProxy(transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		ModifyResponse: g.passAnswer,
		ErrorHandler:   g.upstreamFailed,
		Transport:      transport,
		BufferPool:     new(buffers),
		ErrorLog:       slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// forward hands the request to the service. The event is recorded when the
// upstream's status is known, before the client sees it.
func (g *gate) forward(x *exchange) bool {
	ctx := context.WithValue(x.r.Context(), exchangeKey{}, x)
	g.proxy.ServeHTTP(x.w, x.r.WithContext(ctx))
	return false
}

// rewrite makes the upstream's request of the client's. ReverseProxy has taken
// hop-by-hop and X-Forwarded headers off already.
func (g *gate) rewrite(p *httputil.ProxyRequest) {
	x := exchangeOf(p.Out.Context())
	up := x.service.pick()
	path := x.path
	if x.service.stripPrefix {
		path = strings.TrimPrefix(path, x.service.prefix)
	}
	if path == "" {
		path = "/"
	}
	setTarget(p.Out.URL, up, path)
	// The query is the client's, byte by byte: nothing here decides by it.
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	// The upstream's own name, so that TLS and name-based hosts work; what the
	// client asked for is in X-Forwarded-Host.
	p.Out.Host = ""

	h := p.Out.Header
	stripClientHeaders(h)
	if x.who.token != "" && !g.forwardToken {
		stripAuthorization(h, func(value string) bool { return bearer(value) == x.who.token })
	}
	setIfAny(h, headerTenant, x.who.tenant)
	setIfAny(h, headerUser, x.who.user)
	setIfAny(h, headerApplication, x.who.application)
	setForwarded(p, x.trustedPeer)
}

// setTarget points u to path at the upstream. RawPath keeps the escapes of the
// cleaned path (%2F stays %2F).
func setTarget(u *url.URL, up *upstream, path string) {
	u.Scheme, u.Host = up.scheme, up.host
	escaped := up.base + path
	u.RawPath = escaped
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		// Both parts were parsed before; a cleaned path always unescapes.
		plain = escaped
	}
	u.Path = plain
}

// stripClientHeaders removes what only the gate may say or know: API keys of
// ours, identities, Sluice-*, and whatever a server that reads _ as - would
// take for one of them.
func stripClientHeaders(h http.Header) {
	h.Del(headerAPIKey)
	h.Del(headerTenant)
	h.Del(headerUser)
	h.Del(headerApplication)
	stripAuthorization(h, func(value string) bool { return ourBearer(value) != "" })
	for name := range h {
		canonical := name
		if strings.IndexByte(name, '_') >= 0 {
			canonical = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		}
		switch {
		case strings.HasPrefix(canonical, "Sluice-"):
			delete(h, name)
		case canonical == name: // the four names themselves are gone already
		case canonical == headerAPIKey, canonical == headerTenant, canonical == headerUser, canonical == headerApplication:
			delete(h, name)
		}
	}
}

// stripAuthorization removes the values of Authorization that ours says are
// meant for the gate. The slice is the client's request's too and stays whole.
func stripAuthorization(h http.Header, ours func(value string) bool) {
	values := h[headerAuthorization]
	if !slices.ContainsFunc(values, ours) {
		return
	}
	if kept := slices.DeleteFunc(slices.Clone(values), ours); len(kept) > 0 {
		h[headerAuthorization] = kept
	} else {
		delete(h, headerAuthorization)
	}
}

func setIfAny(h http.Header, name, value string) {
	if value != "" {
		h[name] = []string{value}
	}
}

// setForwarded sets X-Forwarded-For, -Host and -Proto. A trusted peer's own
// are kept (the chain grows); anybody else's are forgotten, since a client can
// write there what it likes.
func setForwarded(p *httputil.ProxyRequest, trustedPeer bool) {
	const forwardedFor, forwardedHost, forwardedProto = "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"
	if trustedPeer {
		if chain := p.In.Header[forwardedFor]; len(chain) > 0 {
			p.Out.Header[forwardedFor] = chain
		}
	}
	p.SetXForwarded()
	if trustedPeer {
		for _, name := range [...]string{forwardedHost, forwardedProto} {
			if v := p.In.Header.Get(name); v != "" {
				p.Out.Header.Set(name, v)
			}
		}
	}
}

// passAnswer runs when the upstream's header is there and the client's is not:
// the cost is corrected if the service says so, the event is recorded and the decision's headers take the place of any the
// upstream wrote.
func (g *gate) passAnswer(res *http.Response) error {
	x := exchangeOf(res.Request.Context())
	g.correct(x, res.Header)
	g.record(x, res.StatusCode)
	for name := range res.Header {
		if strings.HasPrefix(name, "Sluice-") {
			delete(res.Header, name)
		}
	}
	g.setHeaders(x, res.Header)
	return nil
}

// upstreamFailed answers for an upstream that could not: 504 when it took too
// long, 502 otherwise. A client that went away gets no answer, its event 499.
func (g *gate) upstreamFailed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	p := problem{kind: problemNone, status: http.StatusBadGateway, title: "Bad gateway", detail: "The service did not answer.", decision: x.id}
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		p.status, p.title, p.detail = statusClientGone, "Client closed request", ""
	case errors.As(err, &timeout) && timeout.Timeout():
		p.status, p.title, p.detail = http.StatusGatewayTimeout, "Gateway timeout", "The service did not answer in time."
	}
	g.record(x, p.status)
	if p.status != statusClientGone {
		g.metrics.upstreamErrors.Inc()
		g.complain.say(slog.LevelWarn, "upstream failed", "service", x.service.name, "status", p.status, "error", err)
	}
	g.setHeaders(x, w.Header())
	x.scratch = p.write(w, x.scratch)
}

// buffers is the proxy's pool of copy buffers.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[copyBufferBytes]byte); ok {
		return p[:]
	}
	return make([]byte, copyBufferBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) { b.pool.Put((*[copyBufferBytes]byte)(p)) }
