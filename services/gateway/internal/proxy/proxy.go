package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// copyBufferBytes is the size of the buffers that responses stream through.
const copyBufferBytes = 32 << 10

// Options of a Proxy; all are required.
type Options struct {
	Transport http.RoundTripper
	Cache     *httpcache.Cache
	// ForwardToken says whether the service sees a token that proved the identity.
	ForwardToken bool
	Log          *slog.Logger
	Complain     *sampledlog.Log
	// Errors counts the requests that a service did not answer.
	Errors prometheus.Counter
}

// Proxy forwards requests. It is safe for concurrent use.
type Proxy struct {
	o       Options
	reverse *httputil.ReverseProxy
}

// New returns a Proxy.
func New(o Options) *Proxy {
	p := &Proxy{o: o}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.passResponse,
		ErrorHandler:   p.fail,
		Transport:      &cacheTransport{cache: o.Cache, next: o.Transport},
		BufferPool:     new(buffers),
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return p
}

// Forward answers the client's request r by its service or from the cache.
func (p *Proxy) Forward(w http.ResponseWriter, r *http.Request, q *Request) {
	q.in = r
	out := r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
	if r.Body != nil && r.Body != http.NoBody {
		q.body = &clientBody{ReadCloser: r.Body}
		out.Body = q.body
	}
	q.writer = writer{ResponseWriter: w, costHeader: q.Service.CostHeader, legacy: q.LegacyHeaders}
	p.reverse.ServeHTTP(&q.writer, out)
	q.writer.stripTrailers()
}

// Header is the request's header as Forward sends it to the service.
func (p *Proxy) Header(r *http.Request, q *Request) http.Header {
	out := r.Clone(context.WithValue(r.Context(), requestKey{}, q))
	httpcache.RemoveHopByHop(out.Header)
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		out.Header.Del(name)
	}
	p.rewrite(&httputil.ProxyRequest{In: r, Out: out})
	return out.Header
}

// rewrite makes the upstream's request of the client's. ReverseProxy has removed
// hop-by-hop and X-Forwarded headers already.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	q := requestOf(pr.Out.Context())
	path := q.Path
	if q.Service.StripPrefix {
		path = strings.TrimPrefix(path, q.Service.Prefix)
	}
	if path == "" {
		path = "/"
	}
	// The query is the client's, byte by byte: nothing here decides by it.
	pr.Out.URL = q.Service.Pick().Target(path, pr.In.URL.RawQuery)
	// The upstream's own name, so that TLS and name-based hosts work; what the
	// client asked for is in X-Forwarded-Host.
	pr.Out.Host = ""

	q.body.announce(pr.Out, pr.In.Trailer)
	h, who := pr.Out.Header, q.Caller
	stripClientHeaders(h, who.TrustedPeer)
	if who.Token != "" && !p.o.ForwardToken {
		StripAuthorization(h, func(value string) bool { return identify.Bearer(value) == who.Token })
	}
	setIfAny(h, identify.HeaderTenant, who.Tenant)
	setIfAny(h, identify.HeaderUser, who.User)
	setIfAny(h, identify.HeaderApplication, who.Application)
	setForwarded(pr, who.TrustedPeer)
}

func setIfAny(h http.Header, name, value string) {
	if value != "" {
		h[name] = []string{value}
	}
}

// setForwarded sets X-Forwarded-For, -Host and -Proto. Those of a trusted peer are
// kept (the chain grows); those of others are dropped, since a client can write
// there what it likes.
func setForwarded(pr *httputil.ProxyRequest, trustedPeer bool) {
	const forwardedFor, forwardedHost, forwardedProto = "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"
	if trustedPeer {
		if chain := pr.In.Header[forwardedFor]; len(chain) > 0 {
			pr.Out.Header[forwardedFor] = chain
		}
	}
	pr.SetXForwarded()
	if trustedPeer {
		for _, name := range [...]string{forwardedHost, forwardedProto} {
			if v := pr.In.Header.Get(name); v != "" {
				pr.Out.Header.Set(name, v)
			}
		}
	}
}

// passResponse runs when the service's header is there and the client's is not.
func (p *Proxy) passResponse(res *http.Response) error {
	q := requestOf(res.Request.Context())
	if res.StatusCode == http.StatusSwitchingProtocols && !switchesAsAsked(res) {
		return errUnaskedSwitch
	}
	q.Decision.Answered(res.StatusCode, res.Header)
	for name := range res.Header {
		if strings.HasPrefix(dashed(name), gatePrefix) {
			delete(res.Header, name)
		}
	}
	q.writer.strip(res.Trailer, "")
	var varyBy []string
	if q.Lookup != nil {
		varyBy = q.Lookup.VaryBy()
	}
	addVary(res.Header, varyBy)
	q.Decision.SetHeaders(res.Header)
	return nil
}

var errUnaskedSwitch = errors.New("the service switched to a protocol that was not asked for")

// switchesAsAsked judges a 101 as ReverseProxy does, which answers 502 to one that
// nobody asked for: Decision.Answered would already have ended the call as a
// success.
func switchesAsAsked(res *http.Response) bool {
	_, both := res.Body.(io.ReadWriteCloser)
	return both && strings.EqualFold(res.Request.Header.Get(routing.HeaderUpgrade), res.Header.Get(routing.HeaderUpgrade))
}

// fail answers for a round trip that failed: an upstream that took too long (504) or
// could not (502), or a client that broke off its request. Only the former are
// errors of the service.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	q := requestOf(r.Context())
	answer := q.problem(err)
	answer.DecisionID = q.Decision.ID()
	q.Decision.Failed(answer.Status, failure(r.Context(), err, answer.Status))
	if answer.Status >= http.StatusInternalServerError && !errors.Is(err, httpcache.ErrNotStored) {
		p.o.Errors.Inc()
		p.o.Complain.Say(slog.LevelWarn, "upstream failed", "service", q.Service.Name, "status", answer.Status, "error", err)
	}
	q.Decision.SetHeaders(w.Header())
	answer.Write(w)
}

// buffers is a pool of copy buffers.
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
