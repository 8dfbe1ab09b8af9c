package controlplane

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Roles of a token.
const (
	RoleAdmin    = "admin"
	RoleReadOnly = "readonly"
)

// Config is what an operator sets.
type Config struct {
	// Listen is host:port of the REST API; port 0 takes a free one.
	Listen string `koanf:"listen" doc:"address of the REST API"`
	// Tokens are who may call it; without any, every call is refused.
	Tokens []Token `koanf:"tokens" doc:"bearer tokens that may call the API, by their SHA-256"`
	// RequestTimeout bounds the work on one request, the database's included.
	RequestTimeout time.Duration `koanf:"requestTimeout" doc:"how long one request may take before it is answered with 503"`
	// ShutdownTimeout bounds how long a stop waits for requests in flight.
	ShutdownTimeout time.Duration `koanf:"shutdownTimeout" doc:"how long a stop waits for requests in flight"`
	// MaxClockSkew is 1s to 24h.
	MaxClockSkew time.Duration `koanf:"maxClockSkew" doc:"how long ago an end may lie that a rule or override is given: callers' clocks may be slow"`
	// MaxAhead is 24h to 876000h, 100 years.
	MaxAhead time.Duration `koanf:"maxAhead" doc:"how far ahead the end of a grant, and the beginning or end of a rule or override, may lie"`
}

// Token is one caller. The token itself is never configured, only its hash.
type Token struct {
	// Name is the actor that the audit log shows; unique.
	Name string `koanf:"name" doc:"the name that the audit log shows"`
	// Role is admin (reads and writes) or readonly.
	Role string `koanf:"role" doc:"admin or readonly"`
	// SHA256 is the hash of the token, 64 hexadecimal digits.
	SHA256 string `koanf:"sha256" doc:"SHA-256 of the token, in hexadecimal"`
}

// DefaultConfig is what holds where an operator sets nothing.
func DefaultConfig() Config {
	return Config{
		Listen:          ":8088",
		RequestTimeout:  5 * time.Second,
		ShutdownTimeout: 10 * time.Second,
		MaxClockSkew:    15 * time.Minute,
		MaxAhead:        10 * 365 * 24 * time.Hour,
	}
}

const (
	maxActorLength = 128 // characters
	day            = 24 * time.Hour
)

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	if c.Listen == "" {
		return errors.New("controlplane.listen must be host:port")
	}
	if c.RequestTimeout <= 0 || c.ShutdownTimeout <= 0 {
		return errors.New("controlplane.requestTimeout and controlplane.shutdownTimeout must be above 0")
	}
	if c.MaxClockSkew < time.Second || c.MaxClockSkew > day {
		return errors.New("controlplane.maxClockSkew must be 1s to 24h")
	}
	if c.MaxAhead < day || c.MaxAhead > 100*365*day {
		return errors.New("controlplane.maxAhead must be 24h to 876000h, 100 years")
	}
	seen := map[string]bool{}
	for i, t := range c.Tokens {
		if err := t.check(); err != nil {
			return fmt.Errorf("controlplane.tokens[%d]: %w", i, err)
		}
		name, hash := "name "+t.Name, "hash "+strings.ToLower(t.SHA256)
		if seen[name] || seen[hash] {
			return fmt.Errorf("controlplane.tokens[%d]: name and hash must each be used once", i)
		}
		seen[name], seen[hash] = true, true
	}
	return nil
}

func (t Token) check() error {
	if n := utf8.RuneCountInString(t.Name); n < 1 || n > maxActorLength || !utf8.ValidString(t.Name) {
		return fmt.Errorf("name must have 1 to %d characters", maxActorLength)
	}
	if t.Role != RoleAdmin && t.Role != RoleReadOnly {
		return fmt.Errorf("role must be %s or %s, not %q", RoleAdmin, RoleReadOnly, t.Role)
	}
	if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != 32 {
		return errors.New("sha256 must be 64 hexadecimal digits")
	}
	return nil
}
