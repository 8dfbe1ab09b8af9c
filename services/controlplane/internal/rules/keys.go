package rules

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/advice"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// APIKey is a key as REST shows it: all but its hash.
type APIKey struct {
	ID            string     `json:"id,omitempty" doc:"Names the key in rules of subject kind apiKey."`
	Version       int64      `json:"version,omitempty" readOnly:"true"`
	Name          string     `json:"name,omitempty" doc:"For people; at most 256 printable characters."`
	TenantID      string     `json:"tenantId" doc:"Whose requests the key identifies. Cannot be changed."`
	UserID        string     `json:"userId,omitempty" doc:"The user that the key is bound to. Cannot be changed."`
	ApplicationID string     `json:"applicationId,omitempty" doc:"The application that the key is bound to. Cannot be changed."`
	Status        string     `json:"status" enum:"active,blocked,revoked" doc:"Anything but active is refused at the gate. revoked is final."`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty" doc:"When the key ends; absent is never."`
}

// NewKey is what a key is created from.
type NewKey struct {
	Name          string     `json:"name,omitempty" doc:"For people; at most 256 printable characters."`
	TenantID      string     `json:"tenantId" doc:"Whose requests the key identifies; no customer needs to have the id. As of user and application: 1 to 128 printable characters without star and without a space at either end."`
	UserID        string     `json:"userId,omitempty" doc:"Binds the key to a user of the tenant."`
	ApplicationID string     `json:"applicationId,omitempty" doc:"Binds the key to an application of the tenant."`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty" doc:"When the key ends; absent is never."`
}

// CreatedKey is the one answer that holds the key itself.
type CreatedKey struct {
	APIKey
	Key      string        `json:"key" doc:"The key. It is shown this once: only its SHA-256 is stored."`
	Warnings []api.Warning `json:"warnings,omitempty" doc:"What is likely a mistake: a tenant that is no customer, where there are customers."`
}

const (
	keyPrefix = "slk_" // lets scanners for leaked secrets recognise one
	keyBytes  = 32     // of crypto/rand, so that an unsalted hash cannot be searched
)

func (s *Handlers) registerKeys(a *api.API) {
	tags := []string{"keys"}
	patch := reflect.TypeFor[KeyPatch]()
	api.Register(a, huma.Operation{OperationID: "create-key", Method: http.MethodPost, Path: "/v1/keys", Tags: tags,
		Summary: "Create an API key, and see it once", DefaultStatus: http.StatusCreated}, reflect.TypeFor[NewKey](), s.createKey)
	api.Register(a, huma.Operation{OperationID: "list-keys", Method: http.MethodGet, Path: "/v1/keys", Tags: tags,
		Summary: "List API keys, by id"}, nil, s.listKeys)
	api.Register(a, huma.Operation{OperationID: "get-key", Method: http.MethodGet, Path: "/v1/keys/{id}", Tags: tags,
		Summary: "Get an API key"}, nil, s.getKey)
	api.Register(a, huma.Operation{OperationID: "put-key", Method: http.MethodPut, Path: "/v1/keys/{id}", Tags: tags,
		Summary: "Replace an API key's name, status and end"}, reflect.TypeFor[APIKey](), s.putKey)
	api.Register(a, huma.Operation{OperationID: "patch-key", Method: http.MethodPatch, Path: "/v1/keys/{id}", Tags: tags,
		Summary:     "Change an API key's name, status or end (JSON merge patch)",
		Description: "Status revoked or blocked is how a key is withdrawn: the gate then answers 403 and knows whose key it was. revoked is final."}, patch, s.patchKey)
	api.Register(a, huma.Operation{OperationID: "delete-key", Method: http.MethodDelete, Path: "/v1/keys/{id}", Tags: tags,
		Summary:       "Delete an API key",
		Description:   "Makes the key unknown: the gate then answers 401, as to a key that never was. To revoke a key (403) PATCH its status to revoked.",
		DefaultStatus: http.StatusNoContent}, nil, s.deleteKey)
}

func (s *Handlers) createKey(ctx context.Context, _ *struct{}) (*api.Document[CreatedKey], error) {
	var in NewKey
	if p := api.Decode(ctx, &in); p != nil {
		return nil, p
	}
	if found := in.check(s.store.Now()); len(found) > 0 {
		return nil, api.Invalid(found...)
	}
	secret := keyPrefix + randomText(keyBytes)
	sum := sha256.Sum256([]byte(secret))
	key := keys.Key{
		ID: "key_" + uuid.NewString(), SHA256: hex.EncodeToString(sum[:]), Status: keys.StatusActive,
		Name: in.Name, TenantID: in.TenantID, UserID: in.UserID, ApplicationID: in.ApplicationID, ExpiresAt: in.ExpiresAt,
	}
	out, err := s.writeKey(ctx, key.ID, api.Precondition{Create: true, Post: true}, func(*keys.Key) (keys.Key, error) { return key, nil })
	if err != nil {
		return nil, err
	}
	warnings, err := advice.Tenant(ctx, s.store.Pool, key.ID, key.TenantID)
	if err != nil {
		api.Log(ctx).WarnContext(ctx, "look for warnings", "kind", "key", "error", err)
	}
	return &api.Document[CreatedKey]{
		ETag: out.ETag, Location: "/v1/keys/" + key.ID, Status: http.StatusCreated,
		Body: CreatedKey{APIKey: out.Body, Key: secret, Warnings: warnings},
	}, nil
}

func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// writeKey stores what change makes of the live key (nil if there is none).
func (s *Handlers) writeKey(ctx context.Context, id string, cond api.Precondition, change func(*keys.Key) (keys.Key, error)) (*api.Document[APIKey], error) {
	stored, err := s.store.Apply(ctx, store.Write{
		Entity: store.Keys, Key: id, Actor: api.Actor(ctx), Cond: cond,
		Build: func(current []byte, version int64) ([]byte, error) {
			var before *keys.Key
			if current != nil {
				before = &keys.Key{}
				if err := json.Unmarshal(current, before); err != nil {
					return nil, fmt.Errorf("decode stored key: %w", err)
				}
			}
			after, err := change(before)
			if err != nil {
				return nil, err
			}
			after.Version = version
			return json.Marshal(after)
		},
	})
	if err != nil {
		return nil, err
	}
	return showKey(stored)
}

func showKey(r store.Record) (*api.Document[APIKey], error) {
	out := &api.Document[APIKey]{ETag: api.ETag(r.Version), Status: http.StatusOK}
	// The hash stays behind, since APIKey has no field for it.
	if err := json.Unmarshal(r.Document, &out.Body); err != nil {
		return nil, fmt.Errorf("decode stored key: %w", err)
	}
	return out, nil
}

func (s *Handlers) getKey(ctx context.Context, in *struct{ api.KeyInput }) (*api.Document[APIKey], error) {
	r, err := s.store.Get(ctx, store.Keys, in.ID)
	if err != nil {
		return nil, err
	}
	return showKey(r)
}

func (s *Handlers) listKeys(ctx context.Context, in *struct {
	api.PageInput
	TenantID string `query:"tenantId" doc:"Only keys of this tenant."`
}) (*struct{ Body api.Page[APIKey] }, error) {
	filters := []store.Filter{{Where: `document->>'tenantId' = $%d`, Value: in.TenantID}}
	records, next, err := s.store.Page(ctx, store.Keys, filters, in.PageInput)
	if err != nil {
		return nil, err
	}
	items, err := store.DecodeAll[APIKey](records)
	return &struct{ Body api.Page[APIKey] }{api.Page[APIKey]{Items: items, Next: next}}, err
}

func (s *Handlers) deleteKey(ctx context.Context, in *struct {
	api.KeyInput
	api.MatchInput
}) (*struct{}, error) {
	return nil, resource.Delete(ctx, s.store, store.Write{Entity: store.Keys, Key: in.ID}, in.MatchInput)
}
