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
	// Hint says how this user chooses another port; empty when unknown.
	Hint string
}

func (e *PortTakenError) Error() string {
	hint := e.Hint
	if hint == "" {
		hint = "choose another"
	}
	return fmt.Sprintf("%s: port %d on 127.0.0.1 is taken: %s, or stop what listens there", e.Server, e.Port, hint)
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

// choosePort returns want, or a free port when want is 0; a wanted port that is taken is a *PortTakenError.
func choosePort(server string, want int, hint string) (int, error) {
	if want == 0 {
		return FreePort()
	}
	if !portFree(want) {
		return 0, &PortTakenError{Server: server, Port: want, Hint: hint}
	}
	return want, nil
}

// awaitPortFree waits for the listener of a process that has just died: its parent's death signal takes a moment.
func awaitPortFree(ctx context.Context, spec launch) error {
	deadline := time.Now().Add(5 * time.Second)
	taken := &PortTakenError{Server: spec.name, Port: spec.port, Hint: spec.hint}
	for !portFree(spec.port) {
		if time.Now().After(deadline) {
			return taken
		}
		select {
		case <-ctx.Done():
			return taken
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
