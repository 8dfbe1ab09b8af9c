package elastic

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"

	schema "github.com/sluice-platform/sluice/schemas/elasticsearch"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const dayLayout = "2006.01.02"

// requestTimeout ends a request whose server takes it and never answers.
const requestTimeout = 30 * time.Second

// Store implements usagestore.Store.
type Store struct {
	cfg       Config
	transport *elastictransport.Client

	mu        sync.Mutex // held while the template is put
	installed bool
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("elasticsearch options: %w", err)
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("elasticsearch url: %w", err)
	}
	options := []elastictransport.Option{
		elastictransport.WithURLs(u),
		// Retries belong to the caller, who knows which items are left.
		elastictransport.WithDisableRetry(),
		elastictransport.WithCompression(gzip.BestSpeed),
		elastictransport.WithTransport(roundTripper()),
	}
	if cfg.Username != "" {
		options = append(options, elastictransport.WithBasicAuth(cfg.Username, cfg.Password))
	}
	if cfg.APIKey != "" {
		options = append(options, elastictransport.WithAPIKey(cfg.APIKey))
	}
	transport, err := elastictransport.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("elasticsearch transport: %w", err)
	}
	return &Store{cfg: cfg, transport: transport}, nil
}

func roundTripper() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: requestTimeout,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       time.Minute,
	}
}

// Ready asks for the server's name; it answers while the cluster does.
func (s *Store) Ready(ctx context.Context) error {
	res, err := esapi.InfoRequest{}.Do(ctx, s.transport)
	return finish(res, err, "ask for its version", nil)
}

// Setup puts the index template; Put does so by itself before the first
// document.
func (s *Store) Setup(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installed {
		return nil
	}
	var template map[string]any
	if err := json.Unmarshal(schema.UsageTemplate, &template); err != nil {
		return fmt.Errorf("read embedded index template: %w", err)
	}
	template["index_patterns"] = []string{s.cfg.IndexPrefix + "-*"}
	body, err := json.Marshal(template)
	if err != nil {
		return fmt.Errorf("encode index template: %w", err)
	}
	res, err := esapi.IndicesPutIndexTemplateRequest{Name: s.cfg.IndexPrefix, Body: reader(body)}.Do(ctx, s.transport)
	if err := finish(res, err, "put index template", nil); err != nil {
		return err
	}
	s.installed = true
	return nil
}

// Refresh makes everything put so far visible to Search, for tests.
func (s *Store) Refresh(ctx context.Context) error {
	res, err := esapi.IndicesRefreshRequest{Index: []string{s.pattern()}}.Do(ctx, s.transport)
	return finish(res, err, "refresh", nil)
}

func (s *Store) pattern() string { return s.cfg.IndexPrefix + "-*" }

func (s *Store) index(e usage.Event) string {
	return s.cfg.IndexPrefix + "-" + e.TS.UTC().Format(dayLayout)
}

// documentID is the same for the same tenant and event id only: the tenant's
// length goes in first, so that no other pair makes the same bytes.
func documentID(e usage.Event) string {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(e.TenantID)))
	h.Write(n[:])
	io.WriteString(h, e.TenantID) //nolint:errcheck // a hash never fails
	io.WriteString(h, e.ID)       //nolint:errcheck // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

func isStatus(err error, status int) bool {
	var e *statusError
	return errors.As(err, &e) && e.status == status
}

// finish reads an answer into out (nil: only looks at its status) and closes it.
func finish(res *esapi.Response, err error, action string, out any) error {
	if err != nil {
		return fmt.Errorf("elasticsearch: %s: %w", action, err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end or given up
	if res.IsError() {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // the status is the error
		return fmt.Errorf("elasticsearch: %s: %w", action, &statusError{status: res.StatusCode, body: string(text)})
	}
	if out == nil {
		_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("elasticsearch: %s: read answer: %w", action, err)
	}
	return nil
}
