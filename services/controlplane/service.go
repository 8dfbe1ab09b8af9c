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

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// UsageReader answers what was decided. usagestore.Store is one.
type UsageReader interface {
	// Search returns a page, newest first; usagestore.ErrBadQuery for a cursor
	// that is none.
	Search(ctx context.Context, q usagestore.Query) (usagestore.Page, error)
	// Get returns one event, or usagestore.ErrNotFound.
	Get(ctx context.Context, id string) (usage.Event, error)
	// Days sums charges by day and counter; usagestore.ErrBadQuery for a span
	// that is none.
	Days(ctx context.Context, q usagestore.DaysQuery) ([]usagestore.DaySum, error)
}

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
	cfg     Config
	deps    Deps
	tokens  tokenTable
	store   *store
	answers *answers
	metrics *metrics
	mux     *http.ServeMux
	addr    atomic.Pointer[net.TCPAddr]
	ready   atomic.Bool
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
	tokens, err := newTokenTable(cfg.Tokens)
	if err != nil {
		return nil, fmt.Errorf("controlplane config: %w", err)
	}
	s := &Service{
		cfg: cfg, deps: deps, tokens: tokens,
		store:   &store{pool: deps.Pool, now: deps.Now},
		answers: &answers{redis: deps.Redis, prefix: deps.KeyPrefix},
		metrics: newMetrics(deps.Registerer),
		mux:     http.NewServeMux(),
	}
	if err := s.routes(); err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	return s, nil
}

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
		s.deps.Log.WarnContext(ctx, "no tokens are configured: every call will be refused")
	}
	server := s.newServer()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	settling, settle := context.WithCancel(ctx)
	var settler sync.WaitGroup
	settler.Go(func() { s.settleDue(settling) })
	defer settler.Wait()
	defer settle()
	s.ready.Store(true)
	s.deps.Log.InfoContext(ctx, "control plane serves", "address", listener.Addr().String())
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
