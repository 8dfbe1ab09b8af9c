package demo

import "log/slog"

// Config configures the demo service.
type Config struct {
	Listen string `koanf:"listen" doc:"Address of the demo service."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:9000"} }

// Deps are what the demo service uses.
type Deps struct {
	Log *slog.Logger
}
