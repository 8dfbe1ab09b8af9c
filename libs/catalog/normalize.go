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

// Normalize returns the service with its defaults filled in, so that what is
// stored and shown is what is in force. The argument is left as it was.
func Normalize(s catalog.Service) catalog.Service {
	s.Upstreams = slices.Clone(s.Upstreams)
	for i, u := range s.Upstreams {
		if u.Weight == nil {
			s.Upstreams[i].Weight = new(DefaultWeight)
		}
	}
	s.Endpoints = slices.Clone(s.Endpoints)
	for i, e := range s.Endpoints {
		if e.Cost == nil {
			s.Endpoints[i].Cost = new(int64(DefaultCost))
		}
	}
	if s.CostHeader != "" && s.MaxCost == nil {
		s.MaxCost = new(int64(DefaultMaxCost))
	}
	return s
}
