package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

// Bounds on what an endpoint may answer.
const (
	maxAnswer = 4 << 10  // bytes of the body that are read
	maxHeader = 16 << 10 // bytes of the header
)

const userAgent = "Sluice-Webhooks/1"

// Message is what is sent.
type Message struct {
	// ID stays the same however often the message is sent.
	ID          string
	ContentType string
	Body        []byte
}

// Answer is what an endpoint answered; Status is 0 where it did not.
type Answer struct {
	Status int
	// Body is its beginning, at most 4 KiB of text.
	Body string
	Took time.Duration
	// Err says why there was no answer. It holds neither the URL, which may
	// hold a token, nor a secret.
	Err error
}

// Delivered reports that the endpoint took the message.
func (a Answer) Delivered() bool { return a.Status >= 200 && a.Status < 300 }

// Gone reports that the endpoint wants no more messages.
func (a Answer) Gone() bool { return a.Status == http.StatusGone }

// Reason says in words why a message was not taken; empty if it was.
func (a Answer) Reason() string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Delivered():
		return ""
	case a.Status >= 300 && a.Status < 400:
		return fmt.Sprintf("answered %d: redirects are not followed", a.Status)
	}
	return fmt.Sprintf("answered %d", a.Status)
}

// Sender signs and sends. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	keys   keyring
	guard  guard
	client *http.Client
	now    func() time.Time
}

// New prepares a sender; it connects to nothing. now may be nil.
func New(cfg Config, now func() time.Time) (*Sender, error) {
	keys, err := parseKeys(cfg.Keys)
	if err != nil {
		return nil, err
	}
	allow, err := parseRanges(cfg.Allow)
	if err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	s := &Sender{cfg: cfg, keys: keys, guard: guard{allow}, now: now}
	dialer := &net.Dialer{Timeout: cfg.Timeout, Control: s.guard.control}
	s.client = &http.Client{
		Timeout: cfg.Timeout,
		Transport: &http.Transport{
			Proxy:                  nil, // one would dial in our place, unguarded
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // what is read is bounded as it comes
			MaxResponseHeaderBytes: maxHeader,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConnsPerHost:    2,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// CheckURL says what is wrong with a URL as far as that can be seen before it
// is dialled; nil if nothing is.
func (s *Sender) CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("must be a URL such as https://example.com/hooks/sluice")
	case u.Scheme != "https" && (u.Scheme != "http" || !s.cfg.AllowHTTP):
		return errors.New("must be https (webhooks.allowHttp can allow http)")
	case u.User != nil:
		return errors.New("must hold no user and password: requests are signed")
	case u.Fragment != "":
		return errors.New("must hold no fragment")
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		if s.guard.check(addr) != nil {
			return errors.New("must have a public address (webhooks.allow can allow others)")
		}
	} else if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		if s.guard.check(netip.MustParseAddr("127.0.0.1")) != nil {
			return errors.New("must not be this host (webhooks.allow can allow it)")
		}
	}
	return nil
}

// NewSecret makes a secret and seals it for storing with the webhook;
// ErrNoKeys where nothing is configured to seal with.
func (s *Sender) NewSecret(webhook string) (plain service.Secret, sealed string, err error) {
	plain = NewSecret()
	sealed, err = s.keys.seal(webhook, plain)
	return plain, sealed, err
}

// Open opens sealed secrets of a webhook, in their order.
func (s *Sender) Open(webhook string, sealed []string) ([]service.Secret, error) {
	if len(sealed) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrSecret)
	}
	secrets := make([]service.Secret, len(sealed))
	for i, text := range sealed {
		var err error
		if secrets[i], err = s.keys.open(webhook, text); err != nil {
			return nil, err
		}
	}
	return secrets, nil
}

// Send makes one attempt, signed with each of the secrets. It takes no longer
// than the configured timeout.
func (s *Sender) Send(ctx context.Context, target string, secrets []service.Secret, m Message) Answer {
	start := time.Now()
	answer := s.attempt(ctx, target, secrets, m)
	answer.Took = time.Since(start)
	return answer
}

func (s *Sender) attempt(ctx context.Context, target string, secrets []service.Secret, m Message) Answer {
	if err := s.CheckURL(target); err != nil { // the configuration may have changed since it was stored
		return Answer{Err: fmt.Errorf("the URL %w", err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{Err: withoutURL(err)}
	}
	req.Header.Set("Content-Type", m.ContentType)
	req.Header.Set("User-Agent", userAgent)
	if err := sign(req.Header, m.ID, s.now(), m.Body, secrets); err != nil {
		return Answer{Err: err}
	}
	res, err := s.client.Do(req)
	if err != nil {
		return Answer{Err: withoutURL(err)}
	}
	defer res.Body.Close()
	// What the body says is for people; a body that breaks off does not undo
	// the status.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return Answer{Status: res.StatusCode, Body: strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")}
}

// withoutURL takes the URL, which url.Error repeats, out of an error.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return errors.New("no answer in time")
		}
		return u.Err
	}
	return err
}

// GiveUpAfter is how long a delivery is tried again.
func (s *Sender) GiveUpAfter() time.Duration { return s.cfg.GiveUpAfter }

// Close lets go of idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }
