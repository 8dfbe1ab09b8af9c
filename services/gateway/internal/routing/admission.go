package routing

import (
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Admission holds requests against what their service demands.
type Admission struct {
	// KeysAge is the time since the table of keys was last known to be complete.
	KeysAge func() time.Duration
	// MaxStaleness is how old it may be for services with refuseStaleKeys; 0: however old.
	MaxStaleness time.Duration
}

// Check rejects a request without the credential that the service demands, with a
// key that may have been revoked meanwhile, or to a service without an upstream:
// to charge it would be wrong. It returns nil where the request may enter.
func (a *Admission) Check(s *Service, who *identify.Identity) *reject.Rejection {
	title, detail := s.missingCredential(who)
	switch {
	case title != "":
		return &reject.Rejection{
			Reason: reject.KeyRequired, Challenge: reject.AnyBearer,
			Problem: reject.Problem{Status: http.StatusUnauthorized, Title: title, Detail: detail},
		}
	case s.RefuseStaleKeys && who.Key != nil && a.MaxStaleness > 0 && a.KeysAge() > a.MaxStaleness:
		return reject.Busy(reject.StaleKeys, "The gate cannot know at present whether API keys are still in force.")
	case s.weights == 0:
		return reject.Busy(reject.NoUpstream, "The service takes no requests at present.")
	}
	return nil
}

// missingCredential says what credential the service demands and the request lacks;
// the title is empty when it lacks none.
func (s *Service) missingCredential(who *identify.Identity) (title, detail string) {
	key, token := who.Key != nil, who.Token != ""
	switch {
	case s.Demands == catalog.RequireKey && !key:
		return "API key required", "Send the key in X-Api-Key or as a Bearer token."
	case s.Demands == catalog.RequireToken && !token:
		return "Token required", "Send a token of an issuer that is trusted here as a Bearer token."
	case s.Demands == catalog.RequireKeyOrToken && !key && !token:
		return "API key or token required", "Send an API key in X-Api-Key, or a key or token as a Bearer token."
	}
	return "", ""
}

// Ask fills req with the question which rules hold for a request of this identity,
// and returns its endpoint, nil where the catalog has none: it then costs 1.
func (s *Service) Ask(req *rule.Request, who *identify.Identity, method, path string) *Endpoint {
	*req = rule.Request{
		TenantID: who.Tenant, UserID: who.User, ApplicationID: who.Application,
		Service: s.Name, Method: method, Path: path, Cost: 1,
	}
	if who.Key != nil {
		req.APIKeyID = who.Key.ID
	}
	found := s.Find(method, path)
	if found != nil {
		req.Cost, req.Endpoint = found.Cost, found.Text
	}
	return found
}
