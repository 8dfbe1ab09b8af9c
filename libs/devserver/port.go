package devserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// PortTakenError says that another program listens on the port a server was to have.
type PortTakenError struct {
	Server string
	Port   int
	// Hint names what chooses another port, a flag or a setting; empty when unknown.
	Hint string
}

func (e *PortTakenError) Error() string {
	another := "choose another"
	if e.Hint != "" {
		another += " with " + e.Hint
	}
	return fmt.Sprintf("%s: port %d on 127.0.0.1 is taken: %s, or stop what listens there", e.Server, e.Port, another)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// FreePort returns a port on which nobody listens, and which no other process gets from FreePort or ReservePort before
// this one has ended. It is taken from below the range the kernel gives to outgoing connections, so that the port of a
// stopped server is still free when the server comes back.
func FreePort() (int, error) {
	const low, high, tries = 15000, 32000, 200
	for range tries {
		port := low + rand.IntN(high-low)
		free, err := ReservePort(port)
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: none in %d tries between %d and %d", tries, low, high)
}

// ReservePort reports whether a port is free, and if so keeps it for this process as FreePort does.
func ReservePort(port int) (bool, error) {
	if ours, err := reserved.take(port); !ours {
		return false, err
	}
	return portFree(port), nil
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// onPort starts a server on the port wanted once that is free, or on a free one when want is 0. A wanted port that stays
// taken is a *PortTakenError; in place of a free one that another program was quicker to take, another is tried.
func onPort[S any](ctx context.Context, server string, want int, hint string, start func(port int) (S, error)) (S, error) {
	var none S
	if want != 0 {
		if err := awaitPortFree(ctx, launch{name: server, port: want, hint: hint}); err != nil {
			return none, err
		}
		return start(want)
	}
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return none, err
		}
		s, err := start(port)
		var taken *PortTakenError
		if err == nil || try == 5 || !errors.Is(err, errAddressInUse) && !errors.As(err, &taken) {
			return s, err
		}
	}
}

// awaitPortFree allows for the listener of a process that is just dying: after a kill -9 of its parent the next run
// may be quicker than the servers' end.
func awaitPortFree(ctx context.Context, spec launch) error {
	const patience, interval = 5 * time.Second, 20 * time.Millisecond
	deadline := time.Now().Add(patience)
	for !portFree(spec.port) {
		taken := &PortTakenError{Server: spec.name, Port: spec.port, Hint: spec.hint}
		if time.Now().After(deadline) {
			return taken
		}
		select {
		case <-ctx.Done():
			return taken
		case <-time.After(interval):
		}
	}
	return nil
}
