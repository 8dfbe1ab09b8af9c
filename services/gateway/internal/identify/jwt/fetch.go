package jwt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxDocumentBytes bounds a key set, unpacked.
const maxDocumentBytes = 1 << 20

// newClient makes a client that follows no redirect, so that keys come from
// the configured address alone. A fetch is rare: without a client given, no
// connection is kept between two.
func newClient(given *http.Client) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	} else if base, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := base.Clone()
		transport.DisableKeepAlives = true
		transport.MaxResponseHeaderBytes = 64 << 10
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// fetch gets the issuer's key set and puts it in force. On an error the old
// one stays. Only one fetch of a source runs at a time.
func (s *source) fetch(ctx context.Context) error {
	changed, err := s.fetchChanged(ctx)
	switch {
	case err != nil:
		s.metrics.failed.Inc()
		return err
	case changed:
		s.metrics.changed.Inc()
	default:
		s.metrics.unchanged.Inc()
	}
	s.metrics.fetched.Set(float64(s.now().Unix()))
	return nil
}

func (s *source) fetchChanged(ctx context.Context) (bool, error) {
	document, etag, err := s.download(ctx)
	if err != nil || document == nil {
		return false, err
	}
	digest := sha256.Sum256(document)
	if s.keys.Load() != nil && digest == s.digest {
		// The same set stays, and with it what was verified by it.
		s.etag = etag
		return false, nil
	}
	set, skipped, err := parseKeySet(document, s.Algorithms)
	if err != nil {
		return false, err
	}
	s.keys.Store(set)
	s.etag, s.digest = etag, digest
	s.metrics.keys.Set(float64(set.size))
	if len(skipped) > 0 {
		s.log.Info("keys of issuer left out", "reasons", errors.Join(skipped...))
	}
	if set.size == 0 {
		s.log.Warn("issuer publishes no keys; none of its tokens is taken")
	}
	return true, nil
}

// download returns the document and its ETag; no document when it is still the
// one held. Errors leave the URL out: it may carry a secret.
func (s *source) download(ctx context.Context) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.JWKSURL, nil)
	if err != nil {
		return nil, "", errors.New("fetch keys: jwksUrl is not usable")
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	if s.etag != "" {
		req.Header.Set("If-None-Match", s.etag)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("fetch keys: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && s.etag != "":
		return nil, s.etag, nil
	case resp.StatusCode/100 == 3:
		return nil, "", fmt.Errorf("fetch keys: status %d, and redirects are not followed", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("fetch keys: status %d", resp.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, maxDocumentBytes+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read keys: %w", err)
	case len(document) > maxDocumentBytes:
		return nil, "", fmt.Errorf("read keys: more than %d bytes", maxDocumentBytes)
	case len(document) == 0:
		return nil, "", errors.New("read keys: empty answer")
	}
	return document, resp.Header.Get("ETag"), nil
}

func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
