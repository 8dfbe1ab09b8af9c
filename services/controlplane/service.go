package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/history"
	"github.com/sluice-platform/sluice/services/controlplane/internal/rules"
	"github.com/sluice-platform/sluice/services/controlplane/internal/sales"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
	"github.com/sluice-platform/sluice/services/controlplane/internal/webhooks"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/webhook"
)

// UsageReader answers what was decided. usagestore.Store is one.
type UsageReader = history.UsageReader

// Portal is what links to the customer portal are made of.
type Portal = sales.Portal

// Deps are what the room is handed. Pool and Usage are required.
type Deps struct {
	// Pool reaches a database with the migrations of outbox and controlplane.
	// It may be away when the room starts; requests are answered with 503.
	Pool *pgxpool.Pool
	// Usage is whichever usage store is configured.
	Usage UsageReader
	// Redis holds the counters, which are only read here, and the answers to
	// top-ups; nil or away, what is known of counters are keeper's checkpoints.
	// KeyPrefix begins the keys.
	Redis     redis.UniversalClient
	KeyPrefix string
	// Webhooks seals webhooks' secrets and tests a webhook; nil can seal none, so
	// that none can be created.
	Webhooks *webhook.Sender
	// Portal makes links to the customer portal, where there is one.
	Portal Portal
	// Log, Registerer and Now default to slog.Default, a registry of its own
	// and time.Now.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Service is the control plane.
type Service struct {
	cfg   Config
	log   *slog.Logger
	api   *api.API
	sales *sales.Handlers
	addr  atomic.Pointer[net.TCPAddr]
	ready atomic.Bool
}

// New checks the configuration and builds the API; it starts nothing and
// reaches for nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if deps.Pool == nil || deps.Usage == nil {
		return nil, errors.New("controlplane needs a database pool and a usage store")
	}
	deps = deps.withDefaults()
	if deps.Webhooks == nil {
		var err error
		if deps.Webhooks, err = webhook.New(webhook.DefaultConfig(), deps.Now); err != nil {
			return nil, fmt.Errorf("controlplane: %w", err)
		}
	}
	tokens, err := apiTokens(cfg.Tokens)
	if err != nil {
		return nil, fmt.Errorf("controlplane config: %w", err)
	}
	a := api.New(api.Config{
		Title: apiTitle, Version: APIVersion, About: apiAbout,
		Tokens: tokens, RequestTimeout: cfg.RequestTimeout,
		Observer: newMetrics(deps.Registerer), Log: deps.Log, Now: deps.Now,
	})
	all := newHandlers(cfg, deps)
	register(a, all)
	if err := a.Publish(); err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	return &Service{cfg: cfg, log: deps.Log, api: a, sales: all.sales}, nil
}

func newHandlers(cfg Config, deps Deps) handlers {
	rows := &store.Store{Pool: deps.Pool, Now: deps.Now}
	reader := history.Reader{UsageReader: deps.Usage, Log: deps.Log}
	bounds := api.TimeBounds{MaxClockSkew: cfg.MaxClockSkew, MaxAhead: cfg.MaxAhead, Now: deps.Now}
	return handlers{
		rules: rules.New(rows, bounds),
		sales: sales.New(sales.Deps{
			Store: rows, Usage: reader, Redis: deps.Redis, KeyPrefix: deps.KeyPrefix, Portal: deps.Portal,
			Bounds: bounds, RequestTimeout: cfg.RequestTimeout, Log: deps.Log,
		}),
		webhooks: webhooks.New(rows, deps.Webhooks, cfg.RequestTimeout),
		history:  history.New(rows, reader),
	}
}

// ServeHTTP answers a request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Registerer == nil {
		d.Registerer = prometheus.NewRegistry()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// Run serves until ctx is cancelled, then lets requests in flight finish.
func (s *Service) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for REST API: %w", err)
	}
	s.addr.Store(listener.Addr().(*net.TCPAddr))
	if len(s.cfg.Tokens) == 0 {
		s.log.WarnContext(ctx, "no tokens are configured: every call will be refused")
	}
	server := s.newServer()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	settling, settle := context.WithCancel(ctx)
	var settler sync.WaitGroup
	settler.Go(func() { s.sales.RunScheduler(settling) })
	defer settler.Wait()
	defer settle()
	s.ready.Store(true)
	s.log.InfoContext(ctx, "control plane serves", "address", listener.Addr().String())
	select {
	case err := <-failed:
		s.ready.Store(false)
		return fmt.Errorf("serve REST API: %w", err)
	case <-ctx.Done():
	}
	s.ready.Store(false)
	err = s.stop(server)
	<-failed // Serve has returned: nobody accepts any more
	return err
}

func (s *Service) stop(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close() // the requests that did not finish are cut; their number is unknown
		return fmt.Errorf("stop REST API: %w", err)
	}
	return nil
}

// Ready is nil while the API is served. A database that is away does not make
// it unready: its callers are then better told 503 and Retry-After than
// refused the connection.
func (s *Service) Ready() error {
	if !s.ready.Load() {
		return errors.New("not listening")
	}
	return nil
}

// Addr is where the API listens, nil before Run does; for port 0.
func (s *Service) Addr() *net.TCPAddr { return s.addr.Load() }

const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

func (s *Service) newServer() *http.Server {
	return &http.Server{
		Handler:           s.api,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + s.cfg.RequestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}
