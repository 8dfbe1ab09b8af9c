package explain

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// Question is what POST /v1/explain takes: a request that is not made.
type Question struct {
	TenantID      string `json:"tenantId"`
	UserID        string `json:"userId"`
	ApplicationID string `json:"applicationId"`
	// APIKeyID is a key's id; its tenant, user and application hold then, as
	// they do for requests with the key.
	APIKeyID string `json:"apiKeyId"`
	// ByToken: the identity is one that a token proved.
	ByToken bool `json:"byToken"`
	// Path is as a client would send it, whose query decides nothing; without
	// one, Service alone is asked of.
	Path    string `json:"path"`
	Method  string `json:"method"`
	Service string `json:"service"`
	// Cost is a trusted caller's; absent is the catalog's.
	Cost *int64 `json:"cost"`
}

// errQuestion is a question that cannot be answered; the text is for the caller.
var errQuestion = errors.New("question")

// check refuses, by the names of the fields, what no request can have, and sets
// the method where there is none.
func (q *Question) check() error {
	var found []string
	for _, f := range [...]struct{ name, value string }{
		{"tenantId", q.TenantID}, {"userId", q.UserID}, {"applicationId", q.ApplicationID}, {"apiKeyId", q.APIKeyID},
	} {
		switch {
		case len(f.value) > identify.MaxIdentityBytes:
			found = append(found, fmt.Sprintf("%s: must have at most %d bytes", f.name, identify.MaxIdentityBytes))
		case !identify.PlainText(f.value):
			found = append(found, f.name+": must be plain UTF-8 text without control characters")
		}
	}
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	switch _, err := http.NewRequest(q.Method, "/", nil); { //nolint:noctx // only asks whether it is a method
	case err != nil, len(q.Method) > event.MaxMethod:
		found = append(found, fmt.Sprintf("method: must be a method of HTTP of at most %d characters, such as GET", event.MaxMethod))
	case routing.WrongCase(q.Method):
		found = append(found, "method: must be written "+strings.ToUpper(q.Method)+", since methods are case-sensitive")
	case q.Method == http.MethodConnect:
		found = append(found, "method: must not be CONNECT, which the gate answers 405")
	}
	if q.Cost != nil && (*q.Cost < 0 || *q.Cost > limit.MaxInteger) {
		found = append(found, "cost: must be a whole number of units from 0 to 2^53")
	}
	if q.Path != "" && q.Service != "" {
		found = append(found, "service: must be left out where path is given, whose service it is")
	}
	if q.ByToken && q.APIKeyID != "" {
		found = append(found, "byToken: must not be together with apiKeyId, which goes first")
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s", errQuestion, strings.Join(found, "; "))
	}
	return nil
}

// askedIdentity is whose request is asked of. A key stands for who it belongs to.
func (x *Explainer) askedIdentity(q Question) (*identify.Identity, error) {
	if q.APIKeyID == "" {
		who := &identify.Identity{Tenant: q.TenantID, User: q.UserID, Application: q.ApplicationID}
		if q.ByToken {
			who.Token = reject.AnyBearer // which one does not matter
		}
		return who, nil
	}
	k, ok := x.o.Key(q.APIKeyID)
	if !ok {
		return nil, fmt.Errorf("%w: apiKeyId: there is no key by this id", errQuestion)
	}
	switch {
	case k.Status != keys.StatusActive:
		return nil, fmt.Errorf("%w: apiKeyId: the key is %s, and its requests are refused", errQuestion, k.Status)
	case k.Expired(x.o.Now()):
		return nil, fmt.Errorf("%w: apiKeyId: the key is expired, and its requests are refused", errQuestion)
	}
	return &identify.Identity{Tenant: k.Tenant, User: k.User, Application: k.Application, Key: k}, nil
}

// askedTarget is the service, and the cleaned path where one is given.
func (x *Explainer) askedTarget(q Question) (*routing.Service, string, error) {
	if q.Path == "" {
		target, ok := x.o.Service(q.Service)
		if !ok {
			return nil, "", fmt.Errorf("%w: give path, or the name of a service in the catalog", errQuestion)
		}
		return target, "", nil
	}
	sent, _, _ := strings.Cut(q.Path, "?")
	path, err := route.CleanPath(sent)
	switch {
	case errors.Is(err, route.ErrNotRooted):
		return nil, "", fmt.Errorf("%w: path: must begin with a slash", errQuestion)
	case err != nil:
		return nil, "", fmt.Errorf("%w: path: %s", errQuestion, err)
	}
	if routing.IsOwn(path) {
		return nil, "", fmt.Errorf("%w: path: %s is the gate's own, and no service's", errQuestion, path)
	}
	target := x.o.Routes.Find(path)
	if target == nil {
		return nil, "", fmt.Errorf("%w: path: no service's prefix covers %s (404, and no decision)", errQuestion, path)
	}
	return target, path, nil
}
