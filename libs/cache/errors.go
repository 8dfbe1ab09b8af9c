package cache

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound is a loader's answer that there is nothing under the key. It is an answer, cached for NegativeTTL, and
	// no failure; a failure is never reported as ErrNotFound.
	ErrNotFound = errors.New("not found")
	// ErrLoadTimeout ends a load that did not return within LoadTimeout.
	ErrLoadTimeout = errors.New("load timed out")
	// ErrWaitTimeout ends a wait for another process's load.
	ErrWaitTimeout = errors.New("waiting for a load timed out")
	// ErrBackingOff is returned in place of a load while failures in a row hold loads back.
	ErrBackingOff = errors.New("backing off after failed loads")
	// ErrSourceDown is returned in place of a load while the family's breaker is open.
	ErrSourceDown = errors.New("source is down")
	// ErrNested is returned to a loader that asks, directly or by way of other keys, for the key it loads.
	ErrNested = errors.New("nested load of the same key")
	// ErrUnavailable is returned by Invalidate and Clear while Redis cannot be reached: nothing was invalidated
	// elsewhere, the caller must repeat it.
	ErrUnavailable = errors.New("cache store unavailable")
	// ErrClosed is returned after Run has ended.
	ErrClosed = errors.New("cache closed")
)

// PanicError is what waiters get when a loader panics.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where
}

func (e *PanicError) Error() string { return fmt.Sprintf("loader panicked: %v", e.Value) }

// RemoteError is the failure of a load in another process, of which only the text is known.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return "load elsewhere: " + e.Text }
