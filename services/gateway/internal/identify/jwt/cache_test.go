package jwt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// TestCacheChangesNoAnswer compares a verifier with a cache, a tiny one so
// that places are fought over, with one without, while time goes on (and
// back), keys rotate and tokens come again.
func TestCacheChangesNoAnswer(t *testing.T) {
	t.Parallel()
	e, cachedOne := serveFetched(t, func(c *Config) { c.CachedTokens = 8 })
	cfg := testConfig(cachedOne.sources[0].JWKSURL)
	cfg.CachedTokens = -1
	plainOne, err := New(cfg, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	now := testNow
	clock := func() time.Time { return now }
	cachedOne.now, plainOne.now = clock, clock

	random := rand.New(rand.NewPCG(1, 2))
	kids := []string{"ed1", "ed2", "ec1"}
	var tokens []string
	for i := range 24 {
		claims := with(goodClaims(now), gojwt.MapClaims{
			"sub": fmt.Sprint("u", i), "nbf": now.Add(time.Duration(random.IntN(120)) * time.Second).Unix(),
			"exp": now.Add(time.Duration(60+random.IntN(180)) * time.Second).Unix(),
		})
		tokens = append(tokens, signers()[kids[i%3]].token(claims))
	}
	accepted := 0
	for step := range 3000 {
		if step%60 == 0 {
			e.publish(document(kids[random.IntN(3)], kids[random.IntN(3)]))
			for _, v := range []*Verifier{cachedOne, plainOne} {
				if err := v.sources[0].fetch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		now = testNow.Add(time.Duration(step/12)*time.Second - time.Duration(random.IntN(5))*time.Second)
		token := tokens[random.IntN(len(tokens))]
		got, gotErr := cachedOne.Verify(token)
		want, wantErr := plainOne.Verify(token)
		if got != want || !errors.Is(gotErr, wantErr) {
			t.Fatalf("step %d: got %+v, %v; without a cache %+v, %v", step, got, gotErr, want, wantErr)
		}
		if wantErr == nil {
			accepted++
		}
	}
	if accepted < 300 || accepted > 2700 {
		t.Errorf("%d of 3000 accepted: the comparison says little", accepted)
	}
}

func TestCacheSizes(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 2, 3: 4, 1 << 14: 1 << 14, 1<<14 + 1: 1 << 15} {
		places := 0
		if c := newCache(size); c != nil {
			places = len(c.places)
		}
		if places != want {
			t.Errorf("%d tokens: %d places, want %d", size, places, want)
		}
	}
}

func TestForgedTokensDoNotEnterTheCache(t *testing.T) {
	t.Parallel()
	_, v := serveFetched(t, func(c *Config) { c.CachedTokens = 1 })
	good := signers()["ed1"].token(goodClaims(testNow))
	if _, err := v.Verify(good); err != nil {
		t.Fatal(err)
	}
	held := v.cache.places[0].Load()
	for range 3 {
		if _, err := v.Verify(signer{"ed1", "EdDSA", signers()["ed2"].key}.token(goodClaims(testNow))); !errors.Is(err, ErrSignature) {
			t.Fatal(err)
		}
	}
	if held == nil || v.cache.places[0].Load() != held {
		t.Error("a forged token took a place")
	}
}

// TestVerifyConcurrently is for the race detector: verifying while sets are
// replaced. A token of the key that is always published never fails.
func TestVerifyConcurrently(t *testing.T) {
	t.Parallel()
	e, v := serveFetched(t, func(c *Config) { c.CachedTokens = 4 })
	always, sometimes := signers()["ed1"], signers()["ed2"]
	var stop atomic.Bool
	var verified atomic.Int64
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			claims := with(goodClaims(testNow), gojwt.MapClaims{"sub": fmt.Sprint("u", i)})
			steady, other := always.token(claims), sometimes.token(claims)
			for !stop.Load() {
				if who, err := v.Verify(steady); err != nil || who.User != claims["sub"] {
					t.Error(who, err)
					return
				}
				if _, err := v.Verify(other); err != nil && !errors.Is(err, ErrUnknownKey) {
					t.Error(err)
					return
				}
				_ = v.Ready()
				verified.Add(1)
			}
		})
	}
	for i := range 100 {
		kids := []string{"ed1", "ed2"}
		e.publish(document(kids[:1+i%2]...))
		if err := v.sources[0].fetch(t.Context()); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "500 rounds", func() bool { return verified.Load() > 500 || t.Failed() })
	stop.Store(true)
	running.Wait()
}
