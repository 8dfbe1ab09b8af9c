package jwt

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// Deps are what a Verifier works with; each may be nil.
type Deps struct {
	// HTTP fetches the key sets, with the transport's proxy and certificates;
	// redirects are not followed whatever it says. Nil: one of its own.
	HTTP *http.Client
	// Now is the time tokens are judged by; nil means time.Now. It is called
	// from any goroutine.
	Now func() time.Time
	// Log gets the troubles of the background fetches; nil discards them.
	Log *slog.Logger
	// Registerer gets the metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Verifier verifies tokens of the configured issuers. Its methods may be
// called from any goroutine.
type Verifier struct {
	sources  []*source
	byIssuer map[string]*source // fixed by New
	cache    *cache
	parser   *gojwt.Parser
	now      func() time.Time
	metrics  *metrics
}

// New checks the configuration and starts nothing. Its error names every
// setting that cannot be worked with.
func New(cfg Config, deps Deps) (*Verifier, error) {
	cfg, err := cfg.normalized()
	if err != nil {
		return nil, fmt.Errorf("configure jwt: %w", err)
	}
	m, err := newMetrics(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register jwt metrics: %w", err)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{
		byIssuer: make(map[string]*source, len(cfg.Issuers)),
		cache:    newCache(cfg.CachedTokens),
		// Strict: each token has one spelling (RFC 4648, 3.5).
		parser:  gojwt.NewParser(gojwt.WithStrictDecoding()),
		now:     deps.Now,
		metrics: m,
	}
	client := newClient(deps.HTTP)
	for _, issuer := range cfg.Issuers {
		s := newSource(issuer, client, deps.Log, deps.Now, m.of(issuer.Issuer))
		v.sources = append(v.sources, s)
		v.byIssuer[issuer.Issuer] = s
	}
	return v, nil
}

// Run keeps the issuers' key sets fresh until ctx is cancelled, and then
// returns nil. It is called once and waits for the goroutines it starts, one
// an issuer.
func (v *Verifier) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, s := range v.sources {
		running.Go(func() { s.run(ctx) })
	}
	<-ctx.Done()
	running.Wait()
	return nil
}

// NotReadyError names the issuers whose keys were never fetched: their tokens
// are refused with ErrNoKeys until they are.
type NotReadyError struct{ Issuers []string }

// Error names the issuers.
func (e *NotReadyError) Error() string {
	return "keys not fetched yet of issuer " + strings.Join(e.Issuers, ", ")
}

// Ready is nil once a key set of each issuer was fetched, and stays so; before
// that it is a *NotReadyError. It does not block.
func (v *Verifier) Ready() error {
	var without []string
	for _, s := range v.sources {
		if s.keys.Load() == nil {
			without = append(without, s.Issuer.Issuer)
		}
	}
	if without != nil {
		return &NotReadyError{Issuers: without}
	}
	return nil
}
