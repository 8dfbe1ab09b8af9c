package devserver

import (
	"context"
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

// FreePort returns a port nobody listens on at this moment. It is taken from below the range the kernel gives to
// outgoing connections, so that the port of a stopped server is still free when the server comes back.
func FreePort() (int, error) {
	const low, high, tries = 15000, 32000, 200
	for range tries {
		port := low + rand.IntN(high-low)
		if portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: none in %d tries between %d and %d", tries, low, high)
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// choosePort returns want once it is free, or a free port when want is 0. A wanted port that stays taken is a
// *PortTakenError.
func choosePort(ctx context.Context, server string, want int, hint string) (int, error) {
	if want == 0 {
		return FreePort()
	}
	return want, awaitPortFree(ctx, launch{name: server, port: want, hint: hint})
}

// awaitPortFree allows for the listener of a process that is just dying: after a kill -9 of its parent the next run
// may be quicker than the servers' end.
func awaitPortFree(ctx context.Context, spec launch) error {
	const patience, interval = 2 * time.Second, 20 * time.Millisecond
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
