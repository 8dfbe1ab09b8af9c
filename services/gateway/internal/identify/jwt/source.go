package jwt

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// minFetchGap is the least time between two fetches from an issuer whose keys
// are held. It is what a flood of tokens with made-up kids costs the issuer.
const minFetchGap = 30 * time.Second

// source is one issuer: its settings and its key set. Only its run goroutine
// fetches; everybody reads keys.
type source struct {
	Issuer
	tenant, user, application claimPath

	client  *http.Client
	log     *slog.Logger
	metrics issuerMetrics
	now     func() time.Time

	// keys is nil until the first successful fetch.
	keys atomic.Pointer[keySet]
	// wanted has room for one: an unknown key was asked for.
	wanted chan struct{}

	// The run goroutine's own: what the held set was read from.
	etag   string
	digest [32]byte
}

func newSource(cfg Issuer, client *http.Client, log *slog.Logger, now func() time.Time, m issuerMetrics) *source {
	c := cfg.Claims
	return &source{
		Issuer:      cfg,
		tenant:      newClaimPath(c.Tenant, dimTenant, c.Required),
		user:        newClaimPath(c.User, dimUser, c.Required),
		application: newClaimPath(c.Application, dimApplication, c.Required),
		client:      client,
		log:         log.With("issuer", cfg.Issuer),
		metrics:     m,
		now:         now,
		wanted:      make(chan struct{}, 1),
	}
}

// key returns the key for a token and the set it is from. An unknown one is
// asked for, and the answer does not wait for it.
func (s *source) key(kid, alg string) (any, *keySet, error) {
	why := ErrNoKeys
	if set := s.keys.Load(); set != nil {
		if key := set.find(kid, alg); key != nil {
			return key, set, nil
		}
		why = ErrUnknownKey
	}
	select {
	case s.wanted <- struct{}{}:
	default: // asked for already
	}
	return nil, nil, why
}

// run keeps the key set fresh until ctx ends. Before the first success it
// tries again after up to a second, then ever longer up to minFetchGap; after
// it, never sooner than minFetchGap.
func (s *source) run(ctx context.Context) {
	first := backoff.Backoff{Min: time.Second, Max: minFetchGap}
	for {
		s.forgetWanted()
		err := s.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("keys of issuer not fetched", "error", err, "have_keys", s.keys.Load() != nil)
		}
		gap := minFetchGap
		if s.keys.Load() == nil {
			gap = first.Next()
		}
		if !sleep(ctx, gap, nil) {
			return
		}
		if err == nil && !sleep(ctx, s.rest(), s.wanted) {
			return
		}
	}
}

// forgetWanted drops what was asked for so far: the fetch that starts now
// answers it. What is asked for while it runs stays.
func (s *source) forgetWanted() {
	select {
	case <-s.wanted:
	default:
	}
}

// rest is what RefreshEvery leaves after minFetchGap, less up to a tenth, so
// that gateways started together do not fetch together.
func (s *source) rest() time.Duration {
	return max(0, s.RefreshEvery-minFetchGap-rand.N(s.RefreshEvery/10))
}

// sleep waits for d or until wake gives, and reports false when ctx ended
// first.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}
