package elastic

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// Flavors of server.
const (
	FlavorElasticsearch = "elasticsearch"
	FlavorOpenSearch    = "opensearch"
)

// DefaultIndexPrefix is followed by -YYYY.MM.DD.
const DefaultIndexPrefix = "ratelimit-usage"

// Config of New. URL is required.
type Config struct {
	// URL of the server, without credentials.
	URL string
	// Flavor is elasticsearch (default) or opensearch.
	Flavor string
	// Username and Password, or APIKey; all empty sends none.
	Username, Password, APIKey string
	// IndexPrefix is lower case; default DefaultIndexPrefix. No deployment on
	// one server may have a prefix that continues another's.
	IndexPrefix string
	// Log; nil is slog.Default.
	Log *slog.Logger
}

// Check says what New would refuse of the configuration, nil without anything.
func (c Config) Check() error { return c.complete() }

func (c *Config) complete() error {
	if c.Flavor == "" {
		c.Flavor = FlavorElasticsearch
	}
	if c.IndexPrefix == "" {
		c.IndexPrefix = DefaultIndexPrefix
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("url is not http:// or https:// with a host")
	case u.User != nil:
		return errors.New("url carries credentials; use username and password")
	case c.Flavor != FlavorElasticsearch && c.Flavor != FlavorOpenSearch:
		return fmt.Errorf("flavor %q is neither %s nor %s", c.Flavor, FlavorElasticsearch, FlavorOpenSearch)
	case c.IndexPrefix != strings.ToLower(c.IndexPrefix) || strings.ContainsAny(c.IndexPrefix, `\/*?"<>| ,#:`) || strings.ContainsAny(c.IndexPrefix[:1], "-_+."):
		return fmt.Errorf("indexPrefix %q is not a lower-case index name", c.IndexPrefix)
	}
	return nil
}
