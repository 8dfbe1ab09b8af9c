package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
)

// server is the port that clients connect to. It serves the gate and nothing
// else: health and metrics live on the admin port.
type server struct {
	cfg      Config
	gate     *gate
	log      *slog.Logger
	listener atomic.Pointer[net.Listener]
}

func newServer(cfg Config, g *gate, log *slog.Logger) *server {
	return &server{cfg: cfg, gate: g, log: log}
}

func (s *server) addr() string {
	if l := s.listener.Load(); l != nil {
		return (*l).Addr().String()
	}
	return ""
}

func (s *server) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (change it with gateway.listen): %w", s.cfg.Listen, err)
	}
	s.listener.Store(&l)
	return l, nil
}

// serve returns the function that serves l until its context ends, and then
// drains.
func (s *server) serve(l net.Listener) func(context.Context) error {
	return func(ctx context.Context) error {
		// Requests do not end with ctx: they are let finish. base cuts what is
		// left after that, hijacked connections (WebSocket) among it.
		base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cut(nil)
		web := &http.Server{
			Handler:           s.gate,
			BaseContext:       func(net.Listener) context.Context { return base },
			ReadHeaderTimeout: s.cfg.Server.ReadHeaderTimeout,
			IdleTimeout:       s.cfg.Server.IdleTimeout,
			MaxHeaderBytes:    s.cfg.Server.MaxHeaderBytes,
			Protocols:         new(http.Protocols),
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			// OPTIONS * is the gate's to answer: net/http's own 200 would claim a
			// server where there is none, before readiness and identity.
			DisableGeneralOptionsHandler: true,
		}
		web.Protocols.SetHTTP1(true)
		web.Protocols.SetUnencryptedHTTP2(s.cfg.H2C)
		ended := make(chan error, 1)
		go func() { ended <- web.Serve(l) }()
		select {
		case err := <-ended:
			return fmt.Errorf("serve on %s: %w", s.addr(), err)
		case <-ctx.Done():
		}
		s.drain(web, cut)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", s.addr(), err)
		}
		return nil
	}
}

// drain lets requests under way finish, then cuts the rest, and returns when
// no request is under way any more: their events must be in the spool before
// it is closed.
func (s *server) drain(web *http.Server, cut context.CancelCauseFunc) {
	limited, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	if err := web.Shutdown(limited); err != nil {
		s.log.Warn("requests are cut that did not end in time", "requests", s.gate.inFlight.Load(), "waited", s.cfg.DrainTimeout)
	}
	cut(proxy.ErrStopped)
	if err := web.Close(); err != nil {
		s.log.Debug("close connections", "error", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now().Add(time.Second); s.gate.inFlight.Load() > 0 && time.Now().Before(last); {
		<-tick.C
	}
}
