package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// startBubble runs a verifier in a bubble of synctest, with an endpoint in
// memory. The bubble's clock moves only while everybody waits.
func startBubble(t *testing.T, e *endpoint, change func(*Config)) *Verifier {
	t.Helper()
	cfg := testConfig("http://issuer.test/keys")
	if change != nil {
		change(&cfg)
	}
	v, err := New(cfg, Deps{HTTP: &http.Client{Transport: e}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("run:", err)
		}
	})
	synctest.Wait()
	return v
}

// advance lets d go by, and everything that is due in it happen.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRunFetchesAtStartAndThenInIntervals(t *testing.T) {
	t.Parallel()
	signers()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.publish(document("rsa1"))
		v := startBubble(t, e, func(c *Config) { c.Issuers[0].RefreshEvery = 10 * time.Minute })
		if err := v.Ready(); err != nil || e.asked.Load() != 1 {
			t.Fatalf("after the start: %v, %d fetches", err, e.asked.Load())
		}
		advance(8 * time.Minute)
		if n := e.asked.Load(); n != 1 {
			t.Errorf("%d fetches after 8 of 10 minutes", n)
		}
		advance(2 * time.Minute)
		if n := e.asked.Load(); n != 2 {
			t.Errorf("%d fetches after 10 minutes, want 2", n)
		}
	})
}

func TestRunFloodOfUnknownKids(t *testing.T) {
	t.Parallel()
	signers()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		var times []time.Time
		e.handle(func(w http.ResponseWriter, _ *http.Request) {
			times = append(times, time.Now())
			w.Write(document("rsa1"))
		})
		v := startBubble(t, e, func(c *Config) { c.Issuers[0].RefreshEvery = 24 * time.Hour })
		s := signers()["ed2"]
		for second := range 120 {
			for i := range 20 {
				s.kid = fmt.Sprint("made-up-", second, "-", i)
				if _, err := v.Verify(s.token(goodClaims(time.Now()))); !errors.Is(err, ErrUnknownKey) {
					t.Fatal(err)
				}
			}
			advance(time.Second)
		}
		if n := len(times); n < 4 || n > 5 {
			t.Errorf("%d fetches in 120 s of flood, want one in 30 s: 4 or 5", n)
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < minFetchGap {
				t.Errorf("fetches %d and %d are only %s apart", i, i+1, gap)
			}
		}
		advance(time.Minute) // what the flood still asked for is answered
		before := len(times)
		advance(10 * time.Hour)
		if len(times) != before {
			t.Errorf("%d fetches without anybody asking", len(times)-before)
		}
	})
}

func TestRunUnknownKidBringsTheNewKey(t *testing.T) {
	t.Parallel()
	signers()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.publish(document("rsa1"))
		v := startBubble(t, e, func(c *Config) { c.Issuers[0].RefreshEvery = 24 * time.Hour })
		advance(time.Hour)
		e.publish(document("rsa1", "rsa2"))
		token := signers()["rsa2"].token(goodClaims(time.Now()))
		if _, err := v.Verify(token); !errors.Is(err, ErrUnknownKey) {
			t.Fatal("the first one is refused at once:", err)
		}
		synctest.Wait() // no time goes by
		if _, err := v.Verify(token); err != nil {
			t.Error("after the fetch it asked for:", err)
		}
		// A flood a moment ago delays the next rotation, but only by the gap.
		e.publish(document("ed1"))
		late := signers()["ed1"].token(goodClaims(time.Now()))
		_, _ = v.Verify(late)
		advance(minFetchGap - time.Second)
		if _, err := v.Verify(late); !errors.Is(err, ErrUnknownKey) {
			t.Error("sooner than the gap:", err)
		}
		advance(time.Second)
		if _, err := v.Verify(late); err != nil {
			t.Error("after the gap:", err)
		}
	})
}

func TestRunIssuerAway(t *testing.T) {
	t.Parallel()
	signers()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		v := startBubble(t, e, nil)
		if v.Ready() == nil {
			t.Fatal("ready without keys")
		}
		token := func() string { return signers()["rsa1"].token(goodClaims(time.Now())) }
		start := time.Now()
		if _, err := v.Verify(token()); !errors.Is(err, ErrNoKeys) || time.Since(start) != 0 {
			t.Errorf("with a fetch under way: %v after %s", err, time.Since(start))
		}
		advance(10 * time.Minute)
		if n := e.asked.Load(); n < 15 || n > 60 {
			t.Errorf("%d fetches in 10 minutes of silence, each given up after 10 s", n)
		}
		e.publish(document("rsa1"))
		advance(defaultTimeout + minFetchGap + time.Second)
		if err := v.Ready(); err != nil {
			t.Fatal("the issuer is back:", err)
		}
		e.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		advance(24 * time.Hour)
		if _, err := v.Verify(token()); err != nil {
			t.Error("old keys after a day without the issuer:", err)
		}
		e.publish(document("ed1"))
		advance(minFetchGap + time.Second)
		if _, err := v.Verify(token()); !errors.Is(err, ErrUnknownKey) {
			t.Error("the issuer is back without that key:", err)
		}
	})
}

func TestRunAFetchAnswersWhatWasAskedBeforeIt(t *testing.T) {
	t.Parallel()
	signers()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		v := startBubble(t, e, func(c *Config) { c.Issuers[0].RefreshEvery = 24 * time.Hour })
		if _, err := v.Verify(signers()["rsa1"].token(goodClaims(time.Now()))); !errors.Is(err, ErrNoKeys) {
			t.Fatal(err)
		}
		e.publish(document("rsa1"))
		advance(time.Second)
		if err := v.Ready(); err != nil {
			t.Fatal(err)
		}
		asked := e.asked.Load()
		advance(time.Hour)
		if n := e.asked.Load() - asked; n != 0 {
			t.Errorf("%d more fetches for a key that is there", n)
		}
	})
}

func TestRunStopsDuringAFetch(t *testing.T) {
	t.Parallel()
	e, v := serve(t, nil)
	e.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	eventually(t, "a fetch is under way", func() bool { return e.asked.Load() == 1 })
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("run did not return; the fetch may take 10 s")
	}
}

// TestRunOverHTTPS is the whole way, over a real connection with a certificate
// of the client's own roots.
func TestRunOverHTTPS(t *testing.T) {
	t.Parallel()
	e := &endpoint{}
	e.publish(document("ec1"))
	server := httptest.NewTLSServer(e)
	t.Cleanup(server.Close)
	cfg := testConfig(server.URL)
	cfg.Issuers[0].AllowHTTP = false
	v, err := New(cfg, Deps{HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := v.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	eventually(t, "ready", func() bool { return v.Ready() == nil })
	if _, err := v.Verify(signers()["ec1"].token(goodClaims(time.Now()))); err != nil {
		t.Error(err)
	}
}
