package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// clientBody is the body of a request on its way to an upstream. It records the
// error that ended it, so that an error of the client does not count as one of the
// service. The transport may read it after the request has ended: it is never
// pooled.
type clientBody struct {
	io.ReadCloser

	broken atomic.Pointer[error]

	// Trailers as they come from the client, and those that the service gets;
	// nil without any.
	arriving, leaving http.Header
}

// Read implements io.Reader.
func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.passTrailers()
	}
	// A read after Close is the transport's doing, not the client's.
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		cause := err // so that err does not escape at each read
		b.broken.CompareAndSwap(nil, &cause)
	}
	return n, err
}

// passTrailers hands over the values. The transport reads them after the end of the
// body, in the goroutine that read the body.
func (b *clientBody) passTrailers() {
	for name := range b.leaving {
		b.leaving[name] = b.arriving[name]
	}
}

// cause is what broke the body, nil where nothing did or there is none.
func (b *clientBody) cause() error {
	if b == nil {
		return nil
	}
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// malformed tells a body that breaks the protocol (chunks without a length)
// from one that was cut off. In HTTP/2 frames are delimited: only the latter.
func malformed(r *http.Request, cause error) bool {
	var connection net.Error
	return r.ProtoMajor == 1 && !errors.Is(cause, io.ErrUnexpectedEOF) && !errors.As(cause, &connection)
}
