package portal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	maxHeader     = 16 << 10
	// stopTimeout bounds the wait for pages under way at the end.
	stopTimeout = 5 * time.Second
)

// Service is the portal. Make it with New; Run once.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	api     *api
	handler http.Handler
	addr    atomic.Pointer[net.TCPAddr]
}

// New checks the configuration; it starts nothing and reaches for nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, deps: deps, metrics: newMetrics(deps.Registerer), api: newAPI(cfg.API)}
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run serves until ctx is cancelled, then lets pages under way finish and
// returns nil.
func (s *Service) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s (change it with portal.listen): %w", s.cfg.Listen, err)
	}
	s.addr.Store(listener.Addr().(*net.TCPAddr))
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: 2 * headerTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	s.deps.Log.InfoContext(ctx, "portal serves", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve the portal: %w", err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = server.Shutdown(limited)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // what is still open after the wait is cut
	}
	<-failed
	if err != nil {
		return fmt.Errorf("stop the portal: %w", err)
	}
	return nil
}

// Ready is nil once the port is open. The control plane away is shown to
// customers, and is no reason to send them elsewhere.
func (s *Service) Ready() error {
	if s.addr.Load() == nil {
		return errors.New("not listening yet")
	}
	return nil
}

// Addr is where it listens, empty before Run has opened the port.
func (s *Service) Addr() string {
	if a := s.addr.Load(); a != nil {
		return a.String()
	}
	return ""
}
