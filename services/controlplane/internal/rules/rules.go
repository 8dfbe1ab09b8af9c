package rules

import (
	"strings"

	"github.com/sluice-platform/sluice/services/controlplane/internal/advice"

	"github.com/google/uuid"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// ruleList narrows the list of rules.
type ruleList struct {
	api.PageInput
	Service string `query:"service" doc:"Only rules whose scope names this service."`
	Tenant  string `query:"tenant" doc:"Only rules whose subject is this tenant, or a user or application of it."`
	Metric  string `query:"metric" doc:"Only rules that count this metric."`
}

func (l ruleList) Filters() []store.Filter {
	return []store.Filter{
		{Where: `document->'scope'->>'service' = $%d`, Value: l.Service},
		{Where: `document->>'metric' = $%d`, Value: l.Metric},
		{Where: ofTenant, Value: l.Tenant},
	}
}

// ofTenant narrows a list to documents whose subject is a tenant's.
const ofTenant = `CASE document->'subject'->>'kind'
	WHEN 'tenant' THEN document->'subject'->>'value' = $%[1]d
	WHEN 'user' THEN starts_with(document->'subject'->>'value', $%[1]d || '/')
	WHEN 'application' THEN starts_with(document->'subject'->>'value', $%[1]d || '/')
	ELSE false END`

func (s *Handlers) ruleResource() resource.Resource[rules.Rule, ruleList] {
	return resource.Resource[rules.Rule, ruleList]{
		Entity: store.Rules, Path: "/v1/rules", Item: "rule", KeyField: "id",
		ID:       func(r *rules.Rule) *string { return &r.ID },
		Version:  func(r *rules.Rule) *int64 { return &r.Version },
		NewKey:   uuid.NewString,
		Validate: func(r rules.Rule) []api.FieldError { return ruleErrors(rule.Validate(r)) },
		Names: func(r rules.Rule) []api.Name {
			return append(subjectNames(r.Subject), api.Name{Field: "id", Value: r.ID}, api.Name{Field: "scope.service", Value: r.Scope.Service})
		},
		Normalize: func(r rules.Rule) rules.Rule { return rule.Normalize(rule.Strip(r)) },
		Carry:     s.carryRule,
		Warn:      advice.Rules,
	}
}

// ruleErrors places what libs/rule has found in the body.
func ruleErrors(found []rule.FieldError) []api.FieldError {
	var out []api.FieldError
	for _, e := range found {
		out = append(out, api.FieldError{Location: "body", Field: e.Field, Message: e.Message})
	}
	return out
}

// subjectNames are the names in a subject: of a user or application the
// tenant's, which ends at the first slash, and its own.
func subjectNames(s rules.Subject) []api.Name {
	const field = "subject.value"
	if s.Kind == rules.SubjectUser || s.Kind == rules.SubjectApplication {
		tenant, name, _ := strings.Cut(s.Value, "/")
		return []api.Name{{Field: field, Value: tenant}, {Field: field, Value: name}}
	}
	return []api.Name{{Field: field, Value: s.Value}}
}
