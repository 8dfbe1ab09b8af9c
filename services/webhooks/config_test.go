package webhooks

import (
	"strings"
	"testing"
	"time"
)

func TestConfigurationIsRefusedByItsKey(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Check(); err != nil {
		t.Fatal(err)
	}
	for key, spoil := range map[string]func(*Config){
		"webhooks.timeout":    func(c *Config) { c.Timeout = 0 },
		"webhooks.allow[0]":   func(c *Config) { c.Allow = []string{"x"} },
		"webhooks.group":      func(c *Config) { c.Group = "" },
		"webhooks.perWebhook": func(c *Config) { c.PerWebhook = 0 },
		"webhooks.minBackoff": func(c *Config) { c.MinBackoff = 2 * c.MaxBackoff },
		"webhooks.pollEvery":  func(c *Config) { c.PollEvery = -time.Second },
		"webhooks.keep":       func(c *Config) { c.Keep = c.GiveUpAfter },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := New(c, Deps{}); err == nil {
			t.Errorf("%s: New takes it", key)
		}
	}
	if _, err := New(DefaultConfig(), Deps{}); err == nil {
		t.Error("New takes no pool")
	}
}
