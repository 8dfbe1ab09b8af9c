package controlplane

import (
	"encoding/hex"
	"fmt"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/history"
	"github.com/sluice-platform/sluice/services/controlplane/internal/rules"
	"github.com/sluice-platform/sluice/services/controlplane/internal/sales"
	"github.com/sluice-platform/sluice/services/controlplane/internal/webhooks"
)

// APIVersion is the version of the contract in the OpenAPI document.
const APIVersion = "1.0.0"

const apiTitle = "Sluice control plane"

const apiAbout = `Rules, services, API keys, audit and usage of a Sluice deployment.

Every call needs a token, sent as Authorization: Bearer TOKEN; one of role readonly may GET only. This page, the contract
and /healthz need none.

Every error is a problem (RFC 9457) whose errors name each wrong field. Changes need If-Match (428 without, 412 when
stale, * for any version); what GET answers can be PUT back. Lists are pages: pass next as cursor. Bodies are JSON in
UTF-8 of at most 1 MB, in which unknown fields are refused.

With dryRun=true, POST, PUT and DELETE of rules, overrides, services, customers and plans are answered as they would be,
preconditions and all, and marked Sluice-Dry-Run: true; nothing is changed.

No call needs a clock of the caller's.`

// Spec returns the OpenAPI document as YAML, as it is served and as it is
// kept in schemas/openapi.
func Spec() ([]byte, error) {
	a := api.New(api.Config{Title: apiTitle, Version: APIVersion, About: apiAbout})
	register(a, handlers{rules: &rules.Handlers{}, sales: &sales.Handlers{}, webhooks: &webhooks.Handlers{}, history: &history.Handlers{}})
	return a.Contract().YAML()
}

// handlers are those of all operations.
type handlers struct {
	rules    *rules.Handlers
	sales    *sales.Handlers
	webhooks *webhooks.Handlers
	history  *history.Handlers
}

// register adds all operations, and describes their fields.
func register(a *api.API, h handlers) {
	h.rules.Register(a)
	h.sales.Register(a)
	h.webhooks.Register(a)
	h.history.Register(a)
	describe(a.Contract().Components.Schemas)
}

// apiTokens are the configured tokens as the API compares them.
func apiTokens(tokens []Token) ([]api.Token, error) {
	out := make([]api.Token, len(tokens))
	for i, t := range tokens {
		out[i] = api.Token{Name: t.Name, Admin: t.Role == RoleAdmin}
		if _, err := hex.Decode(out[i].Sum[:], []byte(t.SHA256)); err != nil {
			return nil, fmt.Errorf("decode hash of token %q: %w", t.Name, err)
		}
	}
	return out, nil
}
