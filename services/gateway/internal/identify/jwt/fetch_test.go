package jwt

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestFetchRotation(t *testing.T) {
	t.Parallel()
	e, v := serveFetched(t, nil)
	old, fresh := signers()["rsa1"].token(goodClaims(testNow)), signers()["rsa2"].token(goodClaims(testNow))
	expect := func(when string, oldErr, freshErr error) {
		t.Helper()
		if _, err := v.Verify(old); !errors.Is(err, oldErr) {
			t.Errorf("%s, old key: got %v, want %v", when, err, oldErr)
		}
		if _, err := v.Verify(fresh); !errors.Is(err, freshErr) {
			t.Errorf("%s, new key: got %v, want %v", when, err, freshErr)
		}
	}
	expect("before", nil, ErrUnknownKey)
	for _, step := range []struct {
		name       string
		kids       []string
		old, fresh error
	}{
		{"both published", []string{"rsa1", "rsa2"}, nil, nil},
		{"old one withdrawn", []string{"rsa2"}, ErrUnknownKey, nil},
		{"all withdrawn", nil, ErrUnknownKey, ErrUnknownKey},
		{"old one back", []string{"rsa1"}, nil, ErrUnknownKey},
	} {
		e.publish(document(step.kids...))
		if err := v.sources[0].fetch(t.Context()); err != nil {
			t.Fatal(step.name, err)
		}
		expect(step.name, step.old, step.fresh)
	}
}

func TestFetchTroubleKeepsKeys(t *testing.T) {
	t.Parallel()
	e, v := serveFetched(t, nil)
	token := signers()["rsa1"].token(goodClaims(testNow))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(document("rsa2")) }))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"500":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
		"204":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "status 204"},
		"304 unasked": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "status 304"},
		"empty":       {func(http.ResponseWriter, *http.Request) {}, "empty answer"},
		"garbage":     {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }, "read key set"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			w.Write(document("rsa2")[:200])
		}, "unexpected EOF"},
		"no keys member": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"error":"busy"}`)) }, "no member keys"},
		"nothing usable": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"keys":[{"kty":"x"}]}`)) }, "no usable key"},
		"2 MB":           {func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), 2<<20)) }, "more than 1048576 bytes"},
		"redirect":       {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects are not followed"},
		"no answer":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		"answer that hangs": {func(w http.ResponseWriter, r *http.Request) {
			w.Write(document("rsa2")[:100])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "deadline exceeded"},
		"reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		e.handle(c.handler)
		// Only those that shall time out are short of time: the machine may be busy.
		v.sources[0].Timeout = defaultTimeout
		if c.want == "deadline exceeded" {
			v.sources[0].Timeout = 100 * time.Millisecond
		}
		err := v.sources[0].fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error holds the URL: %v", name, err)
		}
		if _, err := v.Verify(token); err != nil {
			t.Errorf("%s: the old key no longer serves: %v", name, err)
		}
	}
	e.publish(document("rsa2"))
	v.sources[0].Timeout = defaultTimeout
	if err := v.sources[0].fetch(t.Context()); err != nil {
		t.Error("after all that:", err)
	}
}

func TestFetchIssuerDown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	v, err := New(testConfig(server.URL+"?secret=hush"), Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.sources[0].fetch(t.Context()); err == nil || strings.Contains(err.Error(), "hush") {
		t.Error("want an error without the URL, got", err)
	}
	var notReady *NotReadyError
	if err := v.Ready(); !errors.As(err, &notReady) || len(notReady.Issuers) != 1 || notReady.Issuers[0] != testIssuer {
		t.Error("ready:", err)
	}
	if _, err := v.Verify(signers()["rsa1"].token(goodClaims(time.Now()))); !errors.Is(err, ErrNoKeys) {
		t.Error("verify:", err)
	}
}

func TestFetchETag(t *testing.T) {
	t.Parallel()
	e, v := serve(t, nil)
	full := 0
	e.handle(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full++
		w.Write(document("rsa1"))
	})
	s := v.sources[0]
	var set *keySet
	for i := range 3 {
		if err := s.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			set = s.keys.Load()
		}
	}
	if full != 1 || s.keys.Load() != set {
		t.Errorf("%d full answers, want 1; the set was replaced: %t", full, s.keys.Load() != set)
	}
	// The same bytes without an ETag are no change either.
	e.publish(document("rsa1"))
	if err := s.fetch(t.Context()); err != nil || s.keys.Load() != set || s.etag != "" {
		t.Errorf("same document: %v, replaced %t, etag %q", err, s.keys.Load() != set, s.etag)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	e := &endpoint{}
	e.publish(document("rsa1", "ed1"))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	reg := prometheus.NewRegistry()
	v, err := New(testConfig(server.URL), Deps{Registerer: reg, Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(testConfig(server.URL), Deps{Registerer: reg}); err != nil {
		t.Fatal("a second verifier in one process:", err)
	}
	for range 2 {
		if err := v.sources[0].fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	if err := v.sources[0].fetch(t.Context()); err == nil {
		t.Fatal("status 500 was taken")
	}
	good := signers()["ed1"].token(goodClaims(testNow))
	for _, token := range []string{good, good, "x", signers()["ed2"].token(goodClaims(testNow))} {
		_, _ = v.Verify(token)
	}
	got := gather(t, reg)
	for name, want := range map[string]float64{
		"sluice_jwt_verifications_total accepted":                 2,
		"sluice_jwt_verifications_total malformed":                1,
		"sluice_jwt_verifications_total unknown_key":              1,
		"sluice_jwt_verifications_total bad_signature":            0,
		"sluice_jwt_cache_hits_total":                             1,
		"sluice_jwt_fetches_total " + testIssuer + " changed":     1,
		"sluice_jwt_fetches_total " + testIssuer + " unchanged":   1,
		"sluice_jwt_fetches_total " + testIssuer + " failed":      1,
		"sluice_jwt_keys " + testIssuer:                           2,
		"sluice_jwt_keys_fetched_timestamp_seconds " + testIssuer: 1_900_000_000,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
}

// gather reads a registry as "name labelvalue…" to value.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			name := family.GetName()
			for _, label := range m.Label {
				name += " " + label.GetValue()
			}
			out[name] = value(m)
		}
	}
	return out
}

func value(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}
