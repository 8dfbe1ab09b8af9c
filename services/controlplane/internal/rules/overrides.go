package rules

import (
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/services/controlplane/internal/advice"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// overrideList narrows the list of overrides.
type overrideList struct {
	api.PageInput
	Tenant string `query:"tenant" doc:"Only overrides of this tenant, or of a user or application of it."`
	Metric string `query:"metric" doc:"Only overrides of this metric."`
}

func (l overrideList) Filters() []store.Filter {
	return []store.Filter{{Where: `document->>'metric' = $%d`, Value: l.Metric}, {Where: ofTenant, Value: l.Tenant}}
}

func (s *Handlers) overrideResource() resource.Resource[overrides.Override, overrideList] {
	return resource.Resource[overrides.Override, overrideList]{
		Entity: store.Overrides, Path: "/v1/overrides", Item: "override", KeyField: "id",
		ID:       func(o *overrides.Override) *string { return &o.ID },
		Version:  func(o *overrides.Override) *int64 { return &o.Version },
		Derived:  rule.OverrideID,
		Validate: func(o overrides.Override) []api.FieldError { return ruleErrors(rule.ValidateOverride(o)) },
		Names:    func(o overrides.Override) []api.Name { return subjectNames(o.Subject) },
		Normalize: func(o overrides.Override) overrides.Override {
			o.Origin = nil // the control plane's to write
			return rule.NormalizeOverride(o)
		},
		Carry: s.carryOverride,
		Warn:  advice.Overrides,
	}
}
