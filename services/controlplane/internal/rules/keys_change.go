package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// KeyPatch is what of a key may be changed; absent fields stay.
type KeyPatch struct {
	Name      *string    `json:"name,omitempty" doc:"For people; at most 256 printable characters."`
	Status    *string    `json:"status,omitempty" enum:"active,blocked,revoked" doc:"revoked is final."`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"When the key ends; null is never." nullable:"true"`
}

func (s *Handlers) putKey(ctx context.Context, in *api.ChangeInput) (*api.Document[APIKey], error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	var want APIKey
	if p := api.Decode(ctx, &want); p != nil {
		return nil, p
	}
	var c keyCheck
	c.status(want.Status)
	c.Text("name", want.Name, 0, api.MaxName)
	c.expiry(want.ExpiresAt)
	if want.ID != "" && want.ID != in.ID {
		c.Add("id", "must be the one in the path, or be left out")
	}
	if len(c.Found) > 0 {
		return nil, api.Invalid(c.Found...)
	}
	return s.writeKey(ctx, in.ID, cond, func(now *keys.Key) (keys.Key, error) {
		after := *now
		after.Name, after.Status, after.ExpiresAt = want.Name, want.Status, want.ExpiresAt
		var c keyCheck
		c.unchanged("tenantId", now.TenantID, want.TenantID)
		c.unchanged("userId", now.UserID, want.UserID)
		c.unchanged("applicationId", now.ApplicationID, want.ApplicationID)
		if len(c.Found) > 0 {
			return after, api.Invalid(c.Found...)
		}
		return after, finalStatus(*now, after)
	})
}

func (s *Handlers) patchKey(ctx context.Context, in *api.ChangeInput) (*api.Document[APIKey], error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	body := api.Body(ctx)
	var want KeyPatch
	if p := api.Decode(ctx, &want); p != nil {
		return nil, p
	}
	// RFC 7396: null removes. Only the end may be removed.
	var named map[string]json.RawMessage
	if err := json.Unmarshal(body, &named); err != nil {
		return nil, fmt.Errorf("decode checked patch: %w", err)
	}
	_, endNamed := named["expiresAt"]
	if found := want.check(); len(found) > 0 {
		return nil, api.Invalid(found...)
	}
	return s.writeKey(ctx, in.ID, cond, func(now *keys.Key) (keys.Key, error) {
		after := *now
		if want.Name != nil {
			after.Name = *want.Name
		}
		if want.Status != nil {
			after.Status = *want.Status
		}
		if endNamed {
			after.ExpiresAt = want.ExpiresAt
		}
		return after, finalStatus(*now, after)
	})
}

// finalStatus keeps revoked for ever: whoever revoked a key relies on it.
func finalStatus(before, after keys.Key) error {
	if before.Status == keys.StatusRevoked && after.Status != keys.StatusRevoked {
		p := api.NewProblem(http.StatusConflict, "revoked", "the key was revoked, which is final; create another")
		p.Errors = []api.FieldError{api.InBody("status", "must stay revoked")}
		return p
	}
	return nil
}

// keyCheck collects what is wrong with a key.
type keyCheck struct{ api.Checks }

func (k NewKey) check(now time.Time) []api.FieldError {
	var c keyCheck
	c.Text("name", k.Name, 0, api.MaxName)
	c.Text("tenantId", k.TenantID, 1, api.MaxIdentity)
	c.Text("userId", k.UserID, 0, api.MaxIdentity)
	c.Text("applicationId", k.ApplicationID, 0, api.MaxIdentity)
	if strings.Contains(k.TenantID, "/") {
		c.Add("tenantId", "must hold no slash, which ends the tenant in tenant/user")
	}
	c.noStar("tenantId", k.TenantID)
	c.noStar("userId", k.UserID)
	c.noStar("applicationId", k.ApplicationID)
	c.Found = append(c.Found, api.CheckNames([]api.Name{{Field: "tenantId", Value: k.TenantID}, {Field: "userId", Value: k.UserID}, {Field: "applicationId", Value: k.ApplicationID}}, nil)...)
	c.expiry(k.ExpiresAt)
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		c.Add("expiresAt", "must be in the future")
	}
	return c.Found
}

func (k KeyPatch) check() []api.FieldError {
	var c keyCheck
	if k.Name != nil {
		c.Text("name", *k.Name, 0, api.MaxName)
	}
	if k.Status != nil {
		c.status(*k.Status)
	}
	c.expiry(k.ExpiresAt)
	return c.Found
}

func (c *keyCheck) status(status string) {
	switch status {
	case keys.StatusActive, keys.StatusBlocked, keys.StatusRevoked:
	default:
		c.Add("status", "must be active, blocked or revoked")
	}
}

func (c *keyCheck) noStar(field, value string) {
	if strings.Contains(value, "*") {
		c.Add(field, "must hold no *, which stands for every value in rules")
	}
}

// expiry keeps to years that RFC 3339 can write in any zone.
func (c *keyCheck) expiry(at *time.Time) {
	if at != nil && (at.UTC().Year() < 1970 || at.UTC().Year() > 9999) {
		c.Add("expiresAt", "must be in the years 1970 to 9999")
	}
}

func (c *keyCheck) unchanged(field, now, want string) {
	if now != want {
		c.Add(field, "cannot be changed; create another key")
	}
}
