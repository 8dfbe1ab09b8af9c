package portal

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/ticket"
)

// Config configures the portal.
type Config struct {
	Listen string `koanf:"listen" doc:"Address of the customer portal."`
	URL    string `koanf:"url" doc:"Address that customers reach the portal by; links begin with it. With https its cookie is sent over TLS only."`
	// KeysFile is read by the process, which hands the keys over as Deps.Keys.
	KeysFile string        `koanf:"keysFile" doc:"File of the keys that links are signed with: one a line, its id and 32 random bytes in base64. The first signs, all are valid; it is read again when it changes. Without it there is no portal."`
	Leeway   time.Duration `koanf:"leeway" doc:"How far the clock of whoever signed a link may be off."`
	API      API           `koanf:"api"`
}

// API is how the portal reaches the control plane.
type API struct {
	URL     string         `koanf:"url" doc:"Address of the control plane's REST API."`
	Token   service.Secret `koanf:"token" doc:"Token of role readonly that the portal reads accounts with."`
	Timeout time.Duration  `koanf:"timeout" doc:"How long one read may take before the page says that figures cannot be read."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Listen: ":8090", URL: "http://127.0.0.1:8090", Leeway: 5 * time.Second,
		API: API{URL: "http://127.0.0.1:8088", Timeout: 5 * time.Second},
	}
}

// Check returns what New would refuse of the configuration, nil without anything.
func (c Config) Check() error {
	switch {
	case c.Listen == "":
		return errors.New("portal.listen must be host:port")
	case c.Leeway < 0 || c.Leeway > time.Hour:
		return errors.New("portal.leeway must be 0 to 1h")
	case c.API.Timeout <= 0:
		return errors.New("portal.api.timeout must be above 0")
	}
	if err := checkURL("portal.url", c.URL); err != nil {
		return err
	}
	return checkURL("portal.api.url", c.API.URL)
}

func checkURL(key, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s must be http:// or https:// with a host, without credentials and query", key)
	}
	return nil
}

// Deps are what the portal uses. Keys are required.
type Deps struct {
	Keys *ticket.Keys
	// Log, Registerer and Now may be nil.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

func (d *Deps) complete() error {
	if d.Keys == nil {
		return errors.New("portal.keysFile: the portal needs the keys that links are signed with")
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}
