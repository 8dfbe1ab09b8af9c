package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultAdminListen keeps the admin port on this machine: it serves profiles
// and has no login.
const DefaultAdminListen = "127.0.0.1:8089"

// adminStopTimeout bounds the wait for running scrapes at the end.
const adminStopTimeout = time.Second

// AdminConfig configures the admin port.
type AdminConfig struct {
	Listen string `koanf:"listen" doc:"Address of the admin port: /metrics, /healthz, /readyz, /debug/pprof. It has no login: keep it on a private interface."`
}

// DefaultAdminConfig returns the defaults.
func DefaultAdminConfig() AdminConfig { return AdminConfig{Listen: DefaultAdminListen} }

// AdminDeps are what the admin port shows.
type AdminDeps struct {
	Group    *Group
	Registry *prometheus.Registry
	Log      *slog.Logger
}

// Admin is the operators' port. It runs beside the Group, not in it: it
// answers from before the first module starts until after the last stopped.
type Admin struct {
	deps     AdminDeps
	listener net.Listener
	server   *http.Server
}

// NewRegistry returns a registry with the collectors of the Go runtime and of
// the process.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// NewAdmin takes the port, so that one in use is known before anything starts;
// it serves nothing until Run.
func NewAdmin(cfg AdminConfig, deps AdminDeps) (*Admin, error) {
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin port: %w", err)
	}
	a := &Admin{deps: deps, listener: listener}
	a.server = &http.Server{
		Handler:           a.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(deps.Log.Handler(), slog.LevelDebug),
	}
	return a, nil
}

// Addr is the address it listens on.
func (a *Admin) Addr() string { return a.listener.Addr().String() }

// Close gives the port back; for an Admin that is not run.
func (a *Admin) Close() error { return a.listener.Close() }

// Run serves the admin port around the Group's whole life and returns the
// Group's error, or its own when the port failed (then the Group is stopped).
func (a *Admin) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := a.server.Serve(a.listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		} else {
			err = fmt.Errorf("admin port: %w", err)
		}
		cancel(err)
		served <- err
	}()
	err := a.deps.Group.Run(ctx)
	a.shutdown(ctx)
	return errors.Join(err, <-served)
}

// shutdown lets running answers end, then cuts what is left (a profile may
// run for minutes).
func (a *Admin) shutdown(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminStopTimeout)
	defer cancel()
	if err := a.server.Shutdown(limited); err != nil {
		// Close reports the listener's close, which Shutdown has done.
		_ = a.server.Close()
	}
}

func (a *Admin) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.deps.Registry, promhttp.HandlerOpts{
		Registry: a.deps.Registry,
		ErrorLog: slog.NewLogLogger(a.deps.Log.Handler(), slog.LevelError),
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	index := indexOf(a.deps.Group.adminRoutes(mux))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		// A client that went away is not our error.
		_, _ = io.WriteString(w, index)
	})
	return mux
}

// indexOf is what GET / says: each path of the port in a line.
func indexOf(modules []string) string {
	var b strings.Builder
	b.WriteString(`The admin port of sluice. It has no login.

/metrics        Prometheus metrics
/healthz        the process lives
/readyz         each module, and why it is not ready
/debug/pprof/   profiles
`)
	for _, pattern := range modules {
		fmt.Fprintln(&b, pattern)
	}
	b.WriteString("\nWhat a module serves below /debug/ is in its README.\n")
	return b.String()
}

// readiness is the body of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Modules []Status `json:"modules"`
}

func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	body := readiness{Ready: true, Modules: a.deps.Group.Status()}
	for _, s := range body.Modules {
		body.Ready = body.Ready && s.Ready
	}
	status := http.StatusOK
	if !body.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away is not our error.
	_ = json.NewEncoder(w).Encode(body)
}
