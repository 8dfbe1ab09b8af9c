package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Webhook is where events are sent to. Its secrets lie elsewhere.
type Webhook struct {
	ID          string   `json:"id,omitempty" doc:"Made up by POST."`
	Version     int64    `json:"version,omitempty" readOnly:"true"`
	URL         string   `json:"url" doc:"https, with a public address; at most 2048 bytes. Redirects are not followed."`
	Description string   `json:"description,omitempty" doc:"For people; at most 256 printable characters."`
	EventTypes  []string `json:"eventTypes,omitempty" doc:"Only events of these types; absent is all. There is com.sluice.quota.threshold.reached.v1. At most 32."`
	TenantID    string   `json:"tenantId,omitempty" doc:"Only events of this tenant."`
	Enabled     *bool    `json:"enabled,omitempty" doc:"Whether events are sent; default true. While it is false new ones pass by."`
	Status      string   `json:"status,omitempty" enum:"active,paused,gone" readOnly:"true" doc:"paused: enabled is false. gone: it answered 410; any PUT opens it again. Ignored in requests."`
}

// CreatedWebhook is the one answer that holds the first secret.
type CreatedWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"What requests are signed with (Standard Webhooks). It is shown this once."`
}

// States of a webhook.
const (
	webhookActive = "active"
	webhookPaused = "paused"
	webhookGone   = "gone"
)

func (s *Handlers) createWebhook(ctx context.Context, _ *struct{}) (*api.Document[CreatedWebhook], error) {
	in, err := s.decodeWebhook(ctx, "")
	if err != nil {
		return nil, err
	}
	in.ID = "wh_" + uuid.NewString()
	plain, sealed, err := s.newWebhookSecret(in.ID)
	if err != nil {
		return nil, err
	}
	out, err := s.writeWebhook(ctx, in, api.Precondition{Create: true, Post: true}, func(ctx context.Context, tx pgx.Tx, _, _ store.Record) error {
		return s.addSecret(ctx, tx, in.ID, sealed)
	})
	if err != nil {
		return nil, err
	}
	return &api.Document[CreatedWebhook]{
		ETag: out.ETag, Location: "/v1/webhooks/" + in.ID, Status: http.StatusCreated,
		Body: CreatedWebhook{Webhook: out.Body, Secret: plain.Reveal()},
	}, nil
}

// writeWebhook stores in, complete but for its version.
func (s *Handlers) writeWebhook(ctx context.Context, in Webhook, cond api.Precondition, then func(context.Context, pgx.Tx, store.Record, store.Record) error) (*api.Document[Webhook], error) {
	stored, err := s.store.Apply(ctx, store.Write{
		Entity: store.Webhooks, Key: in.ID, Actor: api.Actor(ctx), Cond: cond, Then: then,
		Build: func(current []byte, version int64) ([]byte, error) {
			if err := in.checkTypes(current); err != nil {
				return nil, err
			}
			in.Version = version
			return json.Marshal(in)
		},
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.showWebhooks(ctx, stored)
	if err != nil {
		return nil, err
	}
	return &api.Document[Webhook]{ETag: api.ETag(stored.Version), Status: http.StatusOK, Body: shown[0]}, nil
}

// showWebhooks decodes stored webhooks and says which are gone.
func (s *Handlers) showWebhooks(ctx context.Context, records ...store.Record) ([]Webhook, error) {
	shown, err := store.DecodeAll[Webhook](records)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(records))
	for i, r := range records {
		keys[i] = r.Key
	}
	rows, err := s.store.Pool.Query(ctx, `SELECT webhook, version FROM webhook_gone WHERE webhook = ANY($1)`, keys)
	if err != nil {
		return nil, fmt.Errorf("read webhooks that are gone: %w", err)
	}
	gone := map[string]int64{}
	var key string
	var version int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &version}, func() error { gone[key] = version; return nil }); err != nil {
		return nil, fmt.Errorf("read webhooks that are gone: %w", err)
	}
	for i := range shown {
		switch w := &shown[i]; {
		case !*w.Enabled:
			w.Status = webhookPaused
		case gone[w.ID] == w.Version:
			w.Status = webhookGone
		default:
			w.Status = webhookActive
		}
	}
	return shown, nil
}

func (s *Handlers) webhookByID(ctx context.Context, id string) (Webhook, store.Record, error) {
	r, err := s.store.Get(ctx, store.Webhooks, id)
	if err != nil {
		return Webhook{}, store.Record{}, err
	}
	shown, err := s.showWebhooks(ctx, r)
	if err != nil {
		return Webhook{}, store.Record{}, err
	}
	return shown[0], r, nil
}

func (s *Handlers) getWebhook(ctx context.Context, in *struct{ api.KeyInput }) (*api.Document[Webhook], error) {
	shown, r, err := s.webhookByID(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &api.Document[Webhook]{ETag: api.ETag(r.Version), Status: http.StatusOK, Body: shown}, nil
}

func (s *Handlers) listWebhooks(ctx context.Context, in *struct{ api.PageInput }) (*struct{ Body api.Page[Webhook] }, error) {
	records, next, err := s.store.Page(ctx, store.Webhooks, nil, in.PageInput)
	if err != nil {
		return nil, err
	}
	items, err := s.showWebhooks(ctx, records...)
	if err != nil {
		return nil, err
	}
	return &struct{ Body api.Page[Webhook] }{api.Page[Webhook]{Items: items, Next: next}}, nil
}
