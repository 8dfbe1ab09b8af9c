package sluice

import (
	"io"
	"log/slog"

	"github.com/sluice-platform/sluice/services/sluice/config"
)

// newLogger writes to w as configured; the configuration has been checked.
func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	// The four names are slog's own, and config refuses all others.
	_ = level.UnmarshalText([]byte(cfg.Level))
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
