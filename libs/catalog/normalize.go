package catalog

import (
	"slices"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// Defaults of what a service leaves out.
const (
	DefaultWeight = 1
	DefaultCost   = 1
	// DefaultMaxCost is of services with a cost header: far above what requests
	// cost (the tokens of a long prompt), far below a number gone wild.
	DefaultMaxCost = 1_000_000
)

// normalCache returns a copy with its defaults filled in.
func normalCache(c *catalog.Cache) *catalog.Cache {
	if c == nil {
		return nil
	}
	full := *c
	if full.Enabled == nil {
		full.Enabled = new(true)
	}
	if full.Query == "" {
		full.Query = catalog.QueryAll
	}
	if full.MaxObjectBytes == 0 {
		full.MaxObjectBytes = DefaultObjectBytes
	}
	return &full
}

// Normalize returns the service with its defaults filled in, so that what is
// stored and shown is what is in force. The argument is left as it was.
func Normalize(s catalog.Service) catalog.Service {
	s.Cache = normalCache(s.Cache)
	s.Upstreams = slices.Clone(s.Upstreams)
	for i, u := range s.Upstreams {
		if u.Weight == nil {
			s.Upstreams[i].Weight = new(DefaultWeight)
		}
	}
	s.Endpoints = slices.Clone(s.Endpoints)
	for i, e := range s.Endpoints {
		s.Endpoints[i].Cache = normalCache(e.Cache)
		if e.Cost == nil {
			s.Endpoints[i].Cost = new(int64(DefaultCost))
		}
	}
	if s.CostHeader != "" && s.MaxCost == nil {
		s.MaxCost = new(int64(DefaultMaxCost))
	}
	return s
}
