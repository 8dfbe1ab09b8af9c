package gateway

import (
	"math"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
)

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if name, err := c.name(); err != nil || name == "" {
		t.Errorf("name %q, %v", name, err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*Config){
		"gateway.listen":                               func(c *Config) { c.Listen = "" },
		"gateway.spool.dir":                            func(c *Config) { c.Spool.Dir = "" },
		"gateway.spool.sizeBytes":                      func(c *Config) { c.Spool.SizeBytes = 1 },
		"gateway.store.timeout":                        func(c *Config) { c.Store.Timeout = 0 },
		"gateway.drainTimeout":                         func(c *Config) { c.DrainTimeout = -1 },
		"gateway.upstream.dialTimeout":                 func(c *Config) { c.Upstream.DialTimeout = 0 },
		"gateway.identity.trustedCidrs":                func(c *Config) { c.Identity.TrustedCIDRs = []string{"127.0.0.1"} },
		"gateway.identity.maxStaleness":                func(c *Config) { c.Identity.MaxStaleness = -1 },
		"gateway.identity.jwt: issuers[0].issuer":      func(c *Config) { c.Identity.JWT.Issuers = []jwt.Issuer{{}} },
		"gateway.explain.tokens[0]":                    func(c *Config) { c.Explain.Tokens = []identify.OperatorToken{{Name: "x", SHA256: "ab"}} },
		"gateway.reservations.tokens[0] (ops)":         func(c *Config) { c.Reservations.Tokens = []identify.OperatorToken{{Name: "ops", SHA256: "abc"}} },
		"gateway.reservations.maxOpen must be 1 to":    func(c *Config) { c.Reservations.MaxOpen = 0 },
		"maxOpen must be 1 to 1000000, not 1000001":    func(c *Config) { c.Reservations.MaxOpen = 1_000_001 },
		"gateway.answers.retryAfterJitter":             func(c *Config) { c.Answers.RetryAfterJitter = math.NaN() },
		"answers.retryAfterJitter must be from 0 to 1": func(c *Config) { c.Answers.RetryAfterJitter = 1.1 },
	} {
		c := DefaultConfig()
		edit(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
		if _, err := New(c, Deps{}); err == nil {
			t.Errorf("%s: New takes it", want)
		}
	}
}
