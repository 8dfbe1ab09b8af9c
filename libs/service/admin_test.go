package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// inspected is a room with an admin route and a switch for readiness.
type inspected struct {
	away     atomic.Bool
	degraded atomic.Bool
}

func (r *inspected) Degraded() string {
	if r.degraded.Load() {
		return "half of it"
	}
	return ""
}

func (r *inspected) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (r *inspected) Ready() error {
	if r.away.Load() {
		return errors.New("kafka away")
	}
	return nil
}

func (r *inspected) AdminRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /tables/{topic}", func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.PathValue("topic"))
	})
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAdminAnswers(t *testing.T) {
	t.Parallel()
	room := &inspected{}
	group := newGroup(t, Module{Name: "gateway", New: func() (Runner, error) { return room, nil }})
	admin, err := NewAdmin(AdminConfig{Listen: "127.0.0.1:0"}, AdminDeps{Group: group, Registry: NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- admin.Run(ctx) }()

	client := &http.Client{Transport: &http.Transport{}}
	base := "http://" + admin.Addr()
	for path, want := range map[string]string{
		"/healthz":                       `{"alive":true}`,
		"/metrics":                       "go_goroutines",
		"/debug/pprof/cmdline":           "service.test",
		"/debug/gateway/tables/rules.v1": "rules.v1",
		"/":                              "/metrics",
		"/?":                             "\n/debug/gateway/\n",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		if status, body := get(t, client, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s, want 200 with %q", path, status, body, want)
		}
	}
	for i := 0; group.Ready() != nil; i++ { // Run marks the group as started
		if i == 1e6 {
			t.Fatal("the group never became ready")
		}
	}
	if status, _ := get(t, client, base+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: %d, want 200", status)
	}
	room.degraded.Store(true)
	if status, body := get(t, client, base+"/readyz"); status != http.StatusOK || !strings.Contains(body, `"degraded":"half of it"`) {
		t.Errorf("/readyz: %d %s", status, body)
	}
	room.away.Store(true)
	status, body := get(t, client, base+"/readyz")
	var answer readiness
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if want := (Status{Name: "gateway", Reason: "kafka away"}); status != http.StatusServiceUnavailable || answer.Ready || len(answer.Modules) != 1 || answer.Modules[0] != want {
		t.Errorf("/readyz: %d %s", status, body)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestAdminPortInUseIsSaidByName(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = NewAdmin(AdminConfig{Listen: taken.Addr().String()}, AdminDeps{Group: newGroup(t), Registry: NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.HasPrefix(err.Error(), "admin port: ") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

// named answers its name at a route that the admin port serves at its root too.
type named struct {
	*inspected
	name string
}

func (r named) AdminRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/explain", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, r.name) })
}

func (r named) RootAdminRoutes() []string { return []string{"POST /v1/explain"} }

func TestOfTwoModulesWithOneRootRouteTheFirstHasIt(t *testing.T) {
	t.Parallel()
	module := func(name string) Module {
		return Module{Name: name, New: func() (Runner, error) { return named{&inspected{}, name}, nil }}
	}
	mux := http.NewServeMux()
	newGroup(t, module("gateway"), module("gateway-2")).adminRoutes(mux)
	for path, want := range map[string]string{
		"/v1/explain": "gateway", "/debug/gateway/v1/explain": "gateway", "/debug/gateway-2/v1/explain": "gateway-2",
	} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, nil))
		if answer.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", path, answer.Code, answer.Body, want)
		}
	}
}
