package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
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
	r := x.r.WithContext(context.WithValue(x.r.Context(), exchangeKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &clientBody{ReadCloser: r.Body}
		r.Body = x.body
	}
	x.answer = answerWriter{ResponseWriter: x.w, x: x, legacy: g.tellsLegacy(x) && !x.onlyUnlimited()}
	g.proxy.ServeHTTP(&x.answer, r)
	x.answer.stripTrailers()
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
	// The query is the client's, byte by byte: nothing here decides by it.
	p.Out.URL = up.target(path, p.In.URL.RawQuery)
	// The upstream's own name, so that TLS and name-based hosts work; what the
	// client asked for is in X-Forwarded-Host.
	p.Out.Host = ""

	x.body.announce(p.Out, p.In.Trailer)
	h := p.Out.Header
	stripClientHeaders(h, x.trustedPeer)
	if x.who.token != "" && !g.forwardToken {
		stripAuthorization(h, func(value string) bool { return bearer(value) == x.who.token })
	}
	setIfAny(h, headerTenant, x.who.tenant)
	setIfAny(h, headerUser, x.who.user)
	setIfAny(h, headerApplication, x.who.application)
	setForwarded(p, x.trustedPeer)
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
// what a failure gives back is given back, the cost of the rest is corrected if
// the service says so, the event is recorded and the decision's headers take the
// place of any the upstream wrote.
func (g *gate) passAnswer(res *http.Response) error {
	x := exchangeOf(res.Request.Context())
	if res.StatusCode == http.StatusSwitchingProtocols && !switchesAsAsked(res) {
		return errUnaskedSwitch
	}
	g.conclude(x, res.StatusCode, rule.Answered)
	g.correct(x, res.Header)
	g.record(x, res.StatusCode)
	for name := range res.Header {
		if strings.HasPrefix(dashed(name), sluicePrefix) {
			delete(res.Header, name)
		}
	}
	x.answer.strip(res.Trailer, "")
	tellVary(res.Header, x.varyBy())
	g.setHeaders(x, res.Header)
	return nil
}

var errUnaskedSwitch = errors.New("the service switched to a protocol that was not asked for")

// switchesAsAsked judges a 101 as the proxy will, which answers 502 to one that
// nobody asked for: by then the call would have ended well, and been charged.
func switchesAsAsked(res *http.Response) bool {
	_, both := res.Body.(io.ReadWriteCloser)
	return both && strings.EqualFold(res.Request.Header.Get(headerUpgrade), res.Header.Get(headerUpgrade))
}

// upstreamFailed answers for a round trip that failed: an upstream that took
// too long (504) or could not (502), and a client that broke its own request
// off. Only the former are errors of the service.
func (g *gate) upstreamFailed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	p := x.failure(err)
	p.kind, p.decision = problemNone, x.id
	g.conclude(x, p.status, howItFailed(r.Context(), err, p.status))
	g.record(x, p.status)
	if p.status >= http.StatusInternalServerError && !errors.Is(err, httpcache.ErrNotStored) {
		g.metrics.upstreamErrors.Inc()
		g.complain.Say(slog.LevelWarn, "upstream failed", "service", x.service.name, "status", p.status, "error", err)
	}
	g.setHeaders(x, w.Header())
	x.scratch = p.write(w, x.scratch)
}

// failure says whose fault it is. A broken body comes first: the transport
// then fails too, whatever it says of it. A client that went away, or that a stop
// cuts off, gets no answer; 499 is for its event.
func (x *exchange) failure(err error) problem {
	broken := x.body.cause()
	var timeout net.Error
	switch {
	case errors.Is(err, httpcache.ErrNotStored):
		return problem{status: http.StatusGatewayTimeout, title: "Gateway timeout", detail: "There is no stored answer, and the request wants no other."}
	case broken != nil && malformed(x.r, broken):
		return problem{status: http.StatusBadRequest, title: "Bad request body", detail: "The request's body is not what its headers announce."}
	case broken != nil, errors.Is(err, context.Canceled), errors.Is(err, errCut):
		return problem{status: statusClientGone, title: "Client closed request"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return problem{status: http.StatusGatewayTimeout, title: "Gateway timeout", detail: "The service did not answer in time."}
	}
	if errors.Is(err, cache.ErrBackingOff) {
		return problem{status: http.StatusServiceUnavailable, title: "Service unavailable", detail: "The service has failed repeatedly; it is asked again in a moment."}
	}
	return problem{status: http.StatusBadGateway, title: "Bad gateway", detail: "The service did not answer."}
}

// howItFailed is the failure behind the gate's own answer to a round trip that
// failed. A client that went away, sent a broken body or wanted nothing but a
// stored answer has itself to blame: its status (499, 400, 504) is nobody's
// answer and gives nothing back.
func howItFailed(ctx context.Context, err error, status int) rule.Failure {
	switch {
	case errors.Is(context.Cause(ctx), errCut):
		return rule.Abandoned
	case errors.Is(err, httpcache.ErrNotStored): // a 504, and yet no service was asked
		return rule.ClientsFault
	case status == http.StatusGatewayTimeout:
		return rule.TimedOut
	case status == http.StatusBadGateway:
		return rule.Unanswered
	}
	return rule.ClientsFault
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
