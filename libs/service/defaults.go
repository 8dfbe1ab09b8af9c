package service

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Defaults fills in what a module's constructor may be given without: a log that
// discards, a registry that nobody reads, and the machine's clock.
func Defaults(log **slog.Logger, registerer *prometheus.Registerer, now *func() time.Time) {
	if *log == nil {
		*log = slog.New(slog.DiscardHandler)
	}
	if *registerer == nil {
		*registerer = prometheus.NewRegistry()
	}
	if *now == nil {
		*now = time.Now
	}
}
