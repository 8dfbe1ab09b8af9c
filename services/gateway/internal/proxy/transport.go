package proxy

import (
	"net"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/httpcache"
)

// Config says how services are reached.
type Config struct {
	DialTimeout     time.Duration `koanf:"dialTimeout" doc:"How long connecting to an upstream may take (504 beyond)."`
	ResponseTimeout time.Duration `koanf:"responseTimeout" doc:"How long an upstream may take to begin its answer (504 beyond)."`
	IdleTimeout     time.Duration `koanf:"idleTimeout" doc:"How long an idle upstream connection is kept."`
	MaxIdlePerHost  int           `koanf:"maxIdlePerHost" doc:"Idle connections kept to each upstream."`
}

// NewTransport returns the one transport that all services share. It follows no
// proxy settings of the environment and never changes a response's coding.
func NewTransport(c Config) *http.Transport {
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

// cacheTransport answers requests from the cache, or sends them by next. The proxy
// treats a stored response like one of the service.
type cacheTransport struct {
	cache *httpcache.Cache
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *cacheTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	q := requestOf(req.Context())
	if q.Lookup != nil {
		return q.Lookup.RoundTrip(req, t.next)
	}
	res, err := t.next.RoundTrip(req)
	if err == nil && q.Service.Caches() {
		t.cache.InvalidateAfter(q.in, res, q.Service.Name, q.Path, func(path string) *httpcache.Policy {
			return q.Service.CachePolicy(q.Service.Find(http.MethodGet, path))
		})
	}
	return res, err
}
