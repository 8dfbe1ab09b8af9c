package demo

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

// stopTimeout bounds the wait for answers under way at the end.
const stopTimeout = 2 * time.Second

// Service is the demo service. Make it with New; Run once.
type Service struct {
	cfg      Config
	log      *slog.Logger
	handler  *handler
	listener atomic.Pointer[net.Listener]
}

// New checks the configuration and starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if cfg.Listen == "" {
		return nil, errors.New("demo.listen is empty: give host:port")
	}
	log := deps.Log
	if log == nil {
		log = slog.Default()
	}
	return &Service{cfg: cfg, log: log, handler: new(handler)}, nil
}

// Run listens and serves until ctx is cancelled. It returns nil after a clean
// stop; an error that says which address is taken otherwise.
func (s *Service) Run(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s (change it with demo.listen): %w", s.cfg.Listen, err)
	}
	s.listener.Store(&listener)
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", s.cfg.Listen, err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(limited); err != nil {
		// What is still open after the wait is cut; Close reports only the
		// listener, which Shutdown has closed.
		_ = server.Close()
	}
	<-served
	return nil
}

// Ready returns nil once the port is open. Safe for concurrent use.
func (s *Service) Ready() error {
	if s.listener.Load() == nil {
		return errors.New("not listening yet")
	}
	return nil
}

// Addr is the address it listens on, empty before Run has opened it.
func (s *Service) Addr() string {
	if l := s.listener.Load(); l != nil {
		return (*l).Addr().String()
	}
	return ""
}

// Requests is how many requests were seen, as GET /stats says.
func (s *Service) Requests() int64 { return s.handler.requests.Load() }
