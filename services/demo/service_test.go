package demo_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/demo"
)

// run starts a demo service on a free port and stops it with the test.
func run(t *testing.T) *demo.Service {
	t.Helper()
	s, err := demo.New(demo.Config{Listen: "127.0.0.1:0"}, demo.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.Ready() != nil; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v", s.Ready())
		}
	}
	return s
}

func get(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %v", method, url, res.StatusCode, err)
	}
	return strings.TrimSpace(string(body))
}

func TestCountsWhatItSawButNotLooksAtIt(t *testing.T) {
	t.Parallel()
	s := run(t)
	base := "http://" + s.Addr()
	if got := get(t, http.MethodGet, base+"/stats"); got != `{"requests":0}` {
		t.Errorf("at the start /stats says %s", got)
	}
	get(t, http.MethodGet, base+"/healthz")
	if got := get(t, http.MethodPost, base+"/demo/a%2Fb?q=1"); got != `{"method":"POST","path":"/demo/a%2Fb"}` {
		t.Errorf("the echo is %s", got)
	}
	get(t, http.MethodGet, base+"/")
	if got := get(t, http.MethodGet, base+"/stats"); got != `{"requests":2}` || s.Requests() != 2 {
		t.Errorf("after two requests /stats says %s, Requests %d", got, s.Requests())
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	first := run(t)
	second, err := demo.New(demo.Config{Listen: first.Addr()}, demo.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), first.Addr()) || !strings.Contains(err.Error(), "demo.listen") {
		t.Fatalf("the error names neither address nor setting: %v", err)
	}
}
