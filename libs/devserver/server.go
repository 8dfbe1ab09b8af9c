package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ErrRunning is returned by Start when the server's process is already there.
var ErrRunning = errors.New("already running")

// errAddressInUse is within the error of a server whose log says that one of its ports is taken.
var errAddressInUse = errors.New("address already in use")

// launch is all it takes to start one server, kept so that Start can do it again on the same data.
type launch struct {
	name    string
	port    int
	hint    string // names what chooses another port
	dir     string // where the server runs and its log lies
	program string
	args    []string
	env     []string // added to the parent's
	cred    *syscall.Credential
	// prepare runs before each start: it removes what a killed process left behind.
	prepare func(ctx context.Context) error
	// ready is one probe; nil means the server answers.
	ready func(ctx context.Context) error
	// stopSignal asks for a clean end. deathSignal is what the kernel sends when the parent dies.
	stopSignal, deathSignal syscall.Signal
	// stopWait bounds a clean stop; what is left after it is killed.
	stopWait time.Duration
}

// server is the part all servers share. Its methods are safe for concurrent use, but a fault test that stops and
// starts from two goroutines gets what it asks for.
type server struct {
	spec launch

	mu  sync.Mutex
	run *child // nil while down
}

// Port is the TCP port on 127.0.0.1; it stays the same across Stop and Start.
func (s *server) Port() int { return s.spec.port }

// Addr is host:port.
func (s *server) Addr() string { return loopback(s.spec.port) }

// LogFile is where the server's output goes.
func (s *server) LogFile() string { return filepath.Join(s.spec.dir, s.spec.name+".log") }

// Dir is where the data really lies, which for Postgres under root may differ from the folder asked for.
func (s *server) Dir() string { return s.spec.dir }

// PID is the process id of the running server, 0 while it is down.
func (s *server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return 0
	}
	return s.run.pid
}

// Done is closed when the present process has ended, for whatever reason; of a server that is down it is closed.
func (s *server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return s.run.done
}

// Start starts the server again on its data and port and returns when it answers. ctx bounds the wait, not the life of
// the server. It fails with ErrRunning when the server is up, and with *PortTakenError when its port is taken.
func (s *server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && !s.run.ended() {
		return fmt.Errorf("start %s: %w", s.spec.name, ErrRunning)
	}
	s.run = nil
	if s.spec.prepare != nil {
		if err := s.spec.prepare(ctx); err != nil {
			return fmt.Errorf("prepare %s: %w", s.spec.name, err)
		}
	}
	if err := awaitPortFree(ctx, s.spec); err != nil {
		return err
	}
	logged := logSize(s.LogFile())
	run, err := s.fork()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.spec.name, err)
	}
	if err := s.awaitReady(ctx, run); err != nil {
		s.reap(run)
		if logHas(s.LogFile(), logged, errAddressInUse.Error()) {
			err = fmt.Errorf("%w: %w", errAddressInUse, err)
		}
		return fmt.Errorf("start %s: %w%s", s.spec.name, err, logTail(s.LogFile()))
	}
	s.run = run
	return nil
}

// Stop ends the server cleanly. When it has not ended after its time (seconds; Kafka 20) or ctx is done, it is killed,
// group and all, which is no error: the data is as good as after a crash. Stopping a stopped server does nothing.
func (s *server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.run.ended() {
		s.run = nil
		return nil
	}
	run := s.run
	// A paused server takes no signal but these two; waking it is harmless for one that runs.
	signalTree(run.pid, syscall.SIGCONT)
	if err := syscall.Kill(run.pid, s.spec.stopSignal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s: %w", s.spec.name, err)
	}
	limit := time.NewTimer(s.spec.stopWait)
	defer limit.Stop()
	select {
	case <-run.done:
	case <-ctx.Done():
	case <-limit.C:
	}
	s.reap(run)
	return nil
}

// Kill ends the server as a power cut would: SIGKILL to it and all its children. It returns when they are gone.
func (s *server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.reap(s.run)
	}
}

// Pause stops the server and its children in their tracks (SIGSTOP): connections stay open, nothing answers.
func (s *server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.run.ended() {
		return fmt.Errorf("signal %s: %w", s.spec.name, os.ErrProcessDone)
	}
	signalTree(s.run.pid, sig)
	return nil
}
