package jwt

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Config says whose tokens are believed. Without issuers every token is
// refused with ErrUnknownIssuer.
type Config struct {
	Issuers      []Issuer `koanf:"issuers" doc:"Issuers whose tokens are believed. Each is trusted for every tenant it names. Empty: none."`
	CachedTokens int      `koanf:"cachedTokens" doc:"Verified tokens that are remembered, up to 1048576; rounded up to a power of two. 0 means 16384, below 0 none."`
}

// Issuer is one signer of tokens. All fields but the first three have usable
// zero values.
type Issuer struct {
	Issuer     string   `koanf:"issuer" doc:"The iss claim of its tokens, compared byte by byte."`
	JWKSURL    string   `koanf:"jwksUrl" doc:"Where its keys are published (JWKS, RFC 7517). Redirects are not followed: give the final address."`
	Audiences  []string `koanf:"audiences" doc:"A token must carry one of these in aud. * takes any token of the issuer, also one that was meant for somebody else."`
	Algorithms []string `koanf:"algorithms" doc:"Signature algorithms that are allowed, of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA. Empty: RS256, ES256, EdDSA."`
	Claims     Claims   `koanf:"claims"`

	Leeway       time.Duration `koanf:"leeway" doc:"How far the issuer's clock may be off, for exp and nbf; at most 10m. 0 means 30s, below 0 none."`
	RefreshEvery time.Duration `koanf:"refreshEvery" doc:"How often its keys are fetched, 30s to 24h; a withdrawn key counts for up to this long. 0 means 5m."`
	Timeout      time.Duration `koanf:"timeout" doc:"How long one fetch of the keys may take, up to 30s. 0 means 10s."`
	AllowHTTP    bool          `koanf:"allowHttp" doc:"Allow a jwksUrl without TLS. Whoever can change that traffic can sign as the issuer."`
}

// Claims names where a token carries the identity. A name is that of a claim,
// or a path into objects with dots between ("org.id"); a claim of the full
// name goes first.
type Claims struct {
	Tenant      string   `koanf:"tenant" doc:"Claim with the tenant; a path such as org.id leads into objects. Empty: tenant_id."`
	User        string   `koanf:"user" doc:"Claim with the user. Empty: sub."`
	Application string   `koanf:"application" doc:"Claim with the application. Empty: azp."`
	Required    []string `koanf:"required" doc:"Which of tenant, user, application a token must carry, or none. Empty: tenant."`
}

const (
	anyAudience    = "*"
	nothingNeeded  = "none"
	dimTenant      = "tenant"
	dimUser        = "user"
	dimApplication = "application"

	defaultLeeway       = 30 * time.Second
	defaultRefreshEvery = 5 * time.Minute
	defaultTimeout      = 10 * time.Second
	defaultCachedTokens = 1 << 14
	maxCachedTokens     = 1 << 20
)

// Check returns every mistake of the configuration, each with the setting's
// name, nil without one.
func (c Config) Check() error {
	_, err := c.normalized()
	return err
}

// normalized returns the configuration with its defaults filled in, or every
// mistake in it, each with the setting's name.
func (c Config) normalized() (Config, error) {
	var errs []error
	if c.CachedTokens == 0 {
		c.CachedTokens = defaultCachedTokens
	}
	if c.CachedTokens > maxCachedTokens {
		errs = append(errs, fmt.Errorf("cachedTokens is %d: at most %d", c.CachedTokens, maxCachedTokens))
	}
	seen := map[string]bool{}
	c.Issuers = slices.Clone(c.Issuers)
	for i := range c.Issuers {
		at := fmt.Sprintf("issuers[%d].", i)
		s := &c.Issuers[i]
		s.fillIn()
		if seen[s.Issuer] {
			errs = append(errs, fmt.Errorf("%sissuer: %q is there twice", at, s.Issuer))
		}
		seen[s.Issuer] = true
		for _, err := range s.check() {
			errs = append(errs, fmt.Errorf("%s%w", at, err))
		}
	}
	return c, errors.Join(errs...)
}

func (s *Issuer) fillIn() {
	if len(s.Algorithms) == 0 {
		s.Algorithms = defaultAlgorithms
	}
	if s.Leeway == 0 {
		s.Leeway = defaultLeeway
	}
	s.Leeway = max(s.Leeway, 0)
	if s.RefreshEvery == 0 {
		s.RefreshEvery = defaultRefreshEvery
	}
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	for _, f := range []struct {
		name *string
		def  string
	}{{&s.Claims.Tenant, "tenant_id"}, {&s.Claims.User, "sub"}, {&s.Claims.Application, "azp"}} {
		if *f.name == "" {
			*f.name = f.def
		}
	}
	if len(s.Claims.Required) == 0 {
		s.Claims.Required = []string{dimTenant}
	}
}

func (s *Issuer) check() []error {
	var errs []error
	if s.Issuer == "" {
		errs = append(errs, errors.New("issuer is empty: give the iss claim of its tokens"))
	}
	if err := s.checkURL(); err != nil {
		errs = append(errs, fmt.Errorf("jwksUrl: %w", err))
	}
	if len(s.Audiences) == 0 || slices.Contains(s.Audiences, "") {
		errs = append(errs, errors.New("audiences: name what this gate is to the issuer, or * for any"))
	}
	for _, alg := range s.Algorithms {
		if algorithms[alg] == nil {
			errs = append(errs, fmt.Errorf("algorithms: %q is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA", alg))
		}
	}
	for _, name := range s.Claims.Required {
		if !slices.Contains([]string{dimTenant, dimUser, dimApplication, nothingNeeded}, name) {
			errs = append(errs, fmt.Errorf("claims.required: %q is none of tenant, user, application, none", name))
		}
	}
	for _, d := range []struct {
		name            string
		is, least, most time.Duration
	}{
		{"leeway", s.Leeway, 0, 10 * time.Minute},
		{"refreshEvery", s.RefreshEvery, minFetchGap, 24 * time.Hour},
		{"timeout", s.Timeout, time.Millisecond, 30 * time.Second},
	} {
		if d.is < d.least || d.is > d.most {
			errs = append(errs, fmt.Errorf("%s is %s, not %s to %s", d.name, d.is, d.least, d.most))
		}
	}
	return errs
}

// checkURL's errors leave the URL out: it may carry a secret.
func (s *Issuer) checkURL() error {
	u, err := url.Parse(s.JWKSURL)
	switch {
	case err != nil || u.Host == "":
		return errors.New("not an absolute URL")
	case u.User != nil:
		return errors.New("must not carry a user or password")
	case u.Scheme == "https", u.Scheme == "http" && s.AllowHTTP:
		return nil
	case u.Scheme == "http":
		return errors.New("must be https, or set allowHttp")
	}
	return fmt.Errorf("scheme %q is not https", u.Scheme)
}
