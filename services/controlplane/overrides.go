package controlplane

import (
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
)

// overrideList narrows the list of overrides.
type overrideList struct {
	PageInput
	Tenant string `query:"tenant" doc:"Only overrides of this tenant, or of a user or application of it."`
	Metric string `query:"metric" doc:"Only overrides of this metric."`
}

func (l overrideList) filters() []filter {
	return []filter{{`document->>'metric' = $%d`, l.Metric}, {ofTenant, l.Tenant}}
}

func (s *Service) overrideResource() resource[overrides.Override, overrideList] {
	return resource[overrides.Override, overrideList]{
		entity: overrideEntity, path: "/v1/overrides", item: "override", keyField: "id",
		key:      func(o *overrides.Override) *string { return &o.ID },
		version:  func(o *overrides.Override) *int64 { return &o.Version },
		derived:  rule.OverrideID,
		validate: func(o overrides.Override) []FieldError { return ruleErrors(rule.ValidateOverride(o)) },
		names:    func(o overrides.Override) []given { return subjectNames(o.Subject) },
		normalize: func(o overrides.Override) overrides.Override {
			o.Origin = nil // the control plane's to write
			return rule.NormalizeOverride(o)
		},
		carry: s.carryOverride,
	}
}
