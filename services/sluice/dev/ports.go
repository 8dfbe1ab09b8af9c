package dev

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Port is an address that something will listen on.
type Port struct {
	// Owner is who: "gateway", "postgres".
	Owner string
	// Addr is host:port.
	Addr string
	// Change is how a user chooses another: "--set gateway.listen=…".
	Change string
	// Patient is set for a server that may still be on its way out after a
	// kill of the sluice before.
	Patient bool
}

// patience bounds the wait for a dying server's port.
const patience = 5 * time.Second

// CheckPorts returns an error that names every port that is taken and how to
// choose another.
func CheckPorts(ports []Port) error {
	var taken []error
	owner := map[string]string{}
	for _, p := range ports {
		if other, twice := owner[p.Addr]; twice {
			taken = append(taken, fmt.Errorf("%s cannot listen on %s: %s does (choose another with %s)", p.Owner, p.Addr, other, p.Change))
			continue
		}
		owner[p.Addr] = p.Owner
		if err := p.free(); err != nil {
			taken = append(taken, fmt.Errorf("%s cannot listen on %s: %w (choose another with %s)", p.Owner, p.Addr, reason(err), p.Change))
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nshift all ports at once with --port-offset 100 (make run ARGS='--port-offset 100')", errors.Join(taken...))
}

func (p Port) free() error {
	deadline := time.Now().Add(patience)
	for {
		l, err := net.Listen("tcp", p.Addr)
		if err == nil {
			return l.Close()
		}
		if !p.Patient || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// reason is the innermost error: "address already in use".
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
