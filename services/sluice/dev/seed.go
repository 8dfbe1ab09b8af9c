package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Seed is the module that creates the demo service and its rules through the
// REST API, each once in the life of the database: what the audit log knows was
// there before and is the user's.
type Seed struct {
	// API is the control plane's address, http://host:port.
	API string
	// Token is an admin token that only the seed uses, so that the audit log
	// tells its changes from the user's.
	Token service.Secret
	// Actor is that token's name.
	Actor string
	// DemoURL is where the demo service listens.
	DemoURL string

	done atomic.Bool
	why  atomic.Pointer[error]
}

// Run seeds, again and again until it is done, and then waits for its end.
func (s *Seed) Run(ctx context.Context) error {
	retry := backoff.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for {
		err := s.seed(ctx)
		if err == nil {
			break
		}
		s.why.Store(&err)
		if retry.Wait(ctx) != nil {
			return nil
		}
	}
	s.done.Store(true)
	<-ctx.Done()
	return nil
}

// Ready returns nil once the demo data is there.
func (s *Seed) Ready() error {
	if s.done.Load() {
		return nil
	}
	if why := s.why.Load(); why != nil {
		return fmt.Errorf("demo data: %w", *why)
	}
	return errors.New("demo data: not created yet")
}

func (s *Seed) seed(ctx context.Context) error {
	if err := s.service(ctx); err != nil {
		return err
	}
	for _, r := range DemoRules() {
		last, err := s.lastChange(ctx, "rule", r.ID)
		if err != nil {
			return err
		}
		if last != "" {
			continue
		}
		if err := s.send(ctx, http.MethodPost, "/v1/rules", "", r, nil); err != nil {
			return err
		}
	}
	return nil
}

// service creates the demo service, or moves its upstream when the demo
// listens elsewhere now and nobody but the seed has touched it.
func (s *Seed) service(ctx context.Context) error {
	want := DemoService(s.DemoURL)
	last, err := s.lastChange(ctx, "service", want.Name)
	if err != nil {
		return err
	}
	switch last {
	case "":
		return s.send(ctx, http.MethodPost, "/v1/services", "", want, nil)
	case s.Actor:
	default:
		return nil
	}
	path := "/v1/services/" + url.PathEscape(want.Name)
	var have catalog.Service
	if err := s.send(ctx, http.MethodGet, path, "", nil, &have); err != nil {
		return err
	}
	if len(have.Upstreams) == 1 && have.Upstreams[0].URL == s.DemoURL {
		return nil
	}
	return s.send(ctx, http.MethodPut, path, "*", want, nil)
}

// lastChange is who changed the resource last, empty if it never was.
func (s *Seed) lastChange(ctx context.Context, kind, key string) (actor string, err error) {
	query := url.Values{"kind": {kind}, "id": {key}, "limit": {"1"}}
	var page struct {
		Items []struct {
			Actor string `json:"actor"`
		} `json:"items"`
	}
	if err := s.send(ctx, http.MethodGet, "/v1/audit?"+query.Encode(), "", nil, &page); err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", nil
	}
	return page.Items[0].Actor, nil
}

func (s *Seed) send(ctx context.Context, method, path, ifMatch string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.API+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token.Reveal())
	req.Header.Set("Content-Type", "application/json")
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err // it names method and URL
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// DemoService is the demo's entry in the catalog.
func DemoService(upstream string) catalog.Service {
	return catalog.Service{
		Name: "demo", Prefix: "/demo/",
		Upstreams: []catalog.Upstream{{URL: upstream}},
		Endpoints: []catalog.Endpoint{
			{Pattern: "GET /demo/hello", About: "says hello"},
			{Pattern: "GET /demo/report", About: "a report, sold by the month"},
		},
	}
}

// DemoRules are the rules of the walk that the guide prints: a rate and a quota.
func DemoRules() []rules.Rule {
	each := rules.Subject{Kind: rules.SubjectTenant, Value: "*"}
	return []rules.Rule{
		{
			ID: "hello-gcra", Name: "30 hellos a minute for each tenant, 10 at once",
			Subject: each, Scope: rules.Scope{Service: "demo", Endpoint: "GET /demo/hello"}, Metric: "hellos",
			Limit: &rules.Limit{Algorithm: rules.AlgorithmGCRA, Limit: new(int64(30)), Window: "1m", Burst: new(int64(10))},
			Mode:  rules.ModeEnforce, OnStoreLoss: rules.StoreLossOpen,
		},
		{
			ID: "report-quota", Name: "1000 reports a month for each tenant",
			Subject: each, Scope: rules.Scope{Service: "demo", Endpoint: "GET /demo/report"}, Metric: "reports",
			Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: new(int64(1000)), Period: "month", Timezone: "UTC"},
			Mode:  rules.ModeEnforce, OnStoreLoss: rules.StoreLossClosed,
		},
	}
}
