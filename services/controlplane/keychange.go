package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// KeyPatch is what of a key may be changed; absent fields stay.
type KeyPatch struct {
	Name      *string    `json:"name,omitempty" doc:"For people; at most 256 printable characters."`
	Status    *string    `json:"status,omitempty" enum:"active,blocked,revoked" doc:"revoked is final."`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"When the key ends; null is never." nullable:"true"`
}

type changeInput struct {
	KeyInput
	MatchInput
}

func (s *Service) putKey(ctx context.Context, in *changeInput) (*document[APIKey], error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	var want APIKey
	if p := decodeBody(callOf(ctx).body, &want); p != nil {
		return nil, p
	}
	var c keyCheck
	c.status(want.Status)
	c.text("name", want.Name, 0, maxKeyName)
	c.expiry(want.ExpiresAt)
	if want.ID != "" && want.ID != in.ID {
		c.add("id", "must be the one in the path, or be left out")
	}
	if len(c.found) > 0 {
		return nil, invalid(c.found...)
	}
	return s.writeKey(ctx, in.ID, cond, func(now *keys.Key) (keys.Key, error) {
		after := *now
		after.Name, after.Status, after.ExpiresAt = want.Name, want.Status, want.ExpiresAt
		var c keyCheck
		c.unchanged("tenantId", now.TenantID, want.TenantID)
		c.unchanged("userId", now.UserID, want.UserID)
		c.unchanged("applicationId", now.ApplicationID, want.ApplicationID)
		if len(c.found) > 0 {
			return after, invalid(c.found...)
		}
		return after, finalStatus(*now, after)
	})
}

func (s *Service) patchKey(ctx context.Context, in *changeInput) (*document[APIKey], error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	body := callOf(ctx).body
	var want KeyPatch
	if p := decodeBody(body, &want); p != nil {
		return nil, p
	}
	// RFC 7396: null removes. Only the end may be removed.
	var named map[string]json.RawMessage
	if err := json.Unmarshal(body, &named); err != nil {
		return nil, fmt.Errorf("decode checked patch: %w", err)
	}
	_, endNamed := named["expiresAt"]
	if found := want.check(); len(found) > 0 {
		return nil, invalid(found...)
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
		p := newProblem(http.StatusConflict, "revoked", "the key was revoked, which is final; create another")
		p.Errors = []FieldError{{"body", "status", "must stay revoked"}}
		return p
	}
	return nil
}

// Bounds of a key, the same as those of what rules name.
const (
	maxKeyName  = 256 // characters
	maxIdentity = 128 // characters
)

// keyCheck collects what is wrong with a key.
type keyCheck struct{ found []FieldError }

func (c *keyCheck) add(field, format string, args ...any) {
	c.found = append(c.found, FieldError{"body", field, fmt.Sprintf(format, args...)})
}

func (k NewKey) check(now time.Time) []FieldError {
	var c keyCheck
	c.text("name", k.Name, 0, maxKeyName)
	c.text("tenantId", k.TenantID, 1, maxIdentity)
	c.text("userId", k.UserID, 0, maxIdentity)
	c.text("applicationId", k.ApplicationID, 0, maxIdentity)
	if strings.Contains(k.TenantID, "/") {
		c.add("tenantId", "must hold no slash, which ends the tenant in tenant/user")
	}
	c.noStar("tenantId", k.TenantID)
	c.noStar("userId", k.UserID)
	c.noStar("applicationId", k.ApplicationID)
	c.found = append(c.found, spacedErrors([]given{{"tenantId", k.TenantID}, {"userId", k.UserID}, {"applicationId", k.ApplicationID}}, nil)...)
	c.expiry(k.ExpiresAt)
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		c.add("expiresAt", "must be in the future")
	}
	return c.found
}

func (k KeyPatch) check() []FieldError {
	var c keyCheck
	if k.Name != nil {
		c.text("name", *k.Name, 0, maxKeyName)
	}
	if k.Status != nil {
		c.status(*k.Status)
	}
	c.expiry(k.ExpiresAt)
	return c.found
}

func (c *keyCheck) status(status string) {
	switch status {
	case keys.StatusActive, keys.StatusBlocked, keys.StatusRevoked:
	default:
		c.add("status", "must be active, blocked or revoked")
	}
}

func (c *keyCheck) text(field, value string, least, most int) {
	n := utf8.RuneCountInString(value)
	if n < least || n > most || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		c.add(field, "must have %d to %d printable characters", least, most)
	}
}

func (c *keyCheck) noStar(field, value string) {
	if strings.Contains(value, "*") {
		c.add(field, "must hold no *, which stands for every value in rules")
	}
}

// expiry keeps to years that RFC 3339 can write in any zone.
func (c *keyCheck) expiry(at *time.Time) {
	if at != nil && (at.UTC().Year() < 1970 || at.UTC().Year() > 9999) {
		c.add("expiresAt", "must be in the years 1970 to 9999")
	}
}

func (c *keyCheck) unchanged(field, now, want string) {
	if now != want {
		c.add(field, "cannot be changed; create another key")
	}
}
