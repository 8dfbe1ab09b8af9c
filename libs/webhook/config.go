package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

// Config is what every process that sends, or stores secrets, has in common.
type Config struct {
	Keys        []service.Secret `koanf:"keys" doc:"Keys that seal webhooks' secrets in Postgres, each id:base64 of 32 random bytes; the first seals, all open. The control plane and the webhooks module need the same; without any, no webhook can be created."`
	Allow       []string         `koanf:"allow" doc:"Address ranges (CIDR) that webhooks may reach though they are not public, such as those of an intranet."`
	AllowHTTP   bool             `koanf:"allowHttp" doc:"Whether webhooks may be plain http, unencrypted."`
	Timeout     time.Duration    `koanf:"timeout" doc:"How long one attempt may take, from the name's resolution to the end of the answer."`
	GiveUpAfter time.Duration    `koanf:"giveUpAfter" doc:"How long a delivery is tried again before it is dead and waits for an operator."`
}

// DefaultConfig returns the defaults: public addresses, https, 10 s, a day.
func DefaultConfig() Config { return Config{Timeout: 10 * time.Second, GiveUpAfter: 24 * time.Hour} }

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	if _, err := parseKeys(c.Keys); err != nil {
		return err
	}
	if _, err := parseRanges(c.Allow); err != nil {
		return err
	}
	if c.Timeout <= 0 || c.GiveUpAfter <= 0 {
		return errors.New("webhooks.timeout and webhooks.giveUpAfter must be positive")
	}
	return nil
}

func parseRanges(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("webhooks.allow[%d]: %q is no range: give one such as 10.1.0.0/16", i, text)
		}
		all = append(all, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()).Masked())
	}
	return all, nil
}
