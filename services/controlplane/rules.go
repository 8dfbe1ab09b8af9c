package controlplane

import (
	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// ruleList narrows the list of rules.
type ruleList struct {
	PageInput
	Service string `query:"service" doc:"Only rules whose scope names this service."`
	Tenant  string `query:"tenant" doc:"Only rules whose subject is this tenant, or a user or application of it."`
	Metric  string `query:"metric" doc:"Only rules that count this metric."`
}

func (l ruleList) filters() []filter {
	return []filter{
		{`document->'scope'->>'service' = $%d`, l.Service},
		{`document->>'metric' = $%d`, l.Metric},
		{ofTenant, l.Tenant},
	}
}

// ofTenant narrows a list to documents whose subject is a tenant's.
const ofTenant = `CASE document->'subject'->>'kind'
	WHEN 'tenant' THEN document->'subject'->>'value' = $%[1]d
	WHEN 'user' THEN starts_with(document->'subject'->>'value', $%[1]d || '/')
	WHEN 'application' THEN starts_with(document->'subject'->>'value', $%[1]d || '/')
	ELSE false END`

func (s *Service) ruleResource() resource[rules.Rule, ruleList] {
	return resource[rules.Rule, ruleList]{
		entity: ruleEntity, path: "/v1/rules", item: "rule", keyField: "id",
		key:      func(r *rules.Rule) *string { return &r.ID },
		version:  func(r *rules.Rule) *int64 { return &r.Version },
		newKey:   uuid.NewString,
		validate: func(r rules.Rule) []FieldError { return ruleErrors(rule.Validate(r)) },
		names: func(r rules.Rule) []given {
			return append(subjectNames(r.Subject), given{"id", r.ID}, given{"scope.service", r.Scope.Service})
		},
		normalize: func(r rules.Rule) rules.Rule { return rule.Normalize(rule.Strip(r)) },
		carry:     s.carryRule,
	}
}

// ruleErrors places what libs/rule has found in the body.
func ruleErrors(found []rule.FieldError) []FieldError {
	var out []FieldError
	for _, e := range found {
		out = append(out, FieldError{Location: "body", Field: e.Field, Message: e.Message})
	}
	return out
}
