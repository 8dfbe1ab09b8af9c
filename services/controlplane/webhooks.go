package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
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

func (s *Service) registerWebhooks(api huma.API) {
	tags := []string{"webhooks"}
	body := reflect.TypeFor[Webhook]()
	const all, one = "/v1/webhooks", "/v1/webhooks/{id}"
	register(s, api, huma.Operation{OperationID: "create-webhook", Method: http.MethodPost, Path: all, Tags: tags,
		Summary: "Create a webhook, and see its secret once", DefaultStatus: http.StatusCreated,
		Description: "Events are POSTed as CloudEvents 1.0 in structured mode, signed after Standard Webhooks " +
			"(headers webhook-id, webhook-timestamp, webhook-signature). 2xx takes an event, 410 ends the webhook, all else is tried again for a day."}, body, s.createWebhook)
	register(s, api, huma.Operation{OperationID: "list-webhooks", Method: http.MethodGet, Path: all, Tags: tags,
		Summary: "List webhooks, by id"}, nil, s.listWebhooks)
	register(s, api, huma.Operation{OperationID: "get-webhook", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get a webhook"}, nil, s.getWebhook)
	register(s, api, huma.Operation{OperationID: "put-webhook", Method: http.MethodPut, Path: one, Tags: tags,
		Summary: "Replace a webhook; its secret stays"}, body, s.putWebhook)
	register(s, api, huma.Operation{OperationID: "delete-webhook", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Delete a webhook, its secrets and its deliveries", DefaultStatus: http.StatusNoContent}, nil, s.deleteWebhook)
	register(s, api, huma.Operation{OperationID: "rotate-webhook-secret", Method: http.MethodPost, Path: one + "/secret", Tags: tags,
		Summary: "Make a new secret, and see it once",
		Description: "Requests carry a signature by each secret until the former one ends, so that receivers can change over. " +
			"A third ends the first at once."}, nil, s.rotateWebhookSecret)
	register(s, api, huma.Operation{OperationID: "test-webhook", Method: http.MethodPost, Path: one + "/test", Tags: tags,
		Summary: "Send a test event now, and see what the endpoint answers"}, nil, s.testWebhook)
	s.registerDeliveries(api, tags)
}

func (s *Service) createWebhook(ctx context.Context, _ *struct{}) (*document[CreatedWebhook], error) {
	in, err := s.decodeWebhook(ctx, "")
	if err != nil {
		return nil, err
	}
	in.ID = "wh_" + uuid.NewString()
	plain, sealed, err := s.newWebhookSecret(in.ID)
	if err != nil {
		return nil, err
	}
	out, err := s.writeWebhook(ctx, in, precondition{create: true, post: true}, func(ctx context.Context, tx pgx.Tx, _, _ record) error {
		return s.addSecret(ctx, tx, in.ID, sealed)
	})
	if err != nil {
		return nil, err
	}
	return &document[CreatedWebhook]{
		ETag: out.ETag, Location: "/v1/webhooks/" + in.ID, Status: http.StatusCreated,
		Body: CreatedWebhook{Webhook: out.Body, Secret: plain.Reveal()},
	}, nil
}

// writeWebhook stores in, complete but for its version.
func (s *Service) writeWebhook(ctx context.Context, in Webhook, cond precondition, then func(context.Context, pgx.Tx, record, record) error) (*document[Webhook], error) {
	stored, err := s.store.apply(ctx, write{
		entity: webhookEntity, key: in.ID, actor: callOf(ctx).who.name, cond: cond, then: then,
		build: func(current []byte, version int64) ([]byte, error) {
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
	return &document[Webhook]{ETag: etag(stored.version), Status: http.StatusOK, Body: shown[0]}, nil
}

// showWebhooks decodes stored webhooks and says which are gone.
func (s *Service) showWebhooks(ctx context.Context, records ...record) ([]Webhook, error) {
	shown, err := decodeAll[Webhook](records)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(records))
	for i, r := range records {
		keys[i] = r.key
	}
	rows, err := s.deps.Pool.Query(ctx, `SELECT webhook, version FROM webhook_gone WHERE webhook = ANY($1)`, keys)
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

func (s *Service) webhookByID(ctx context.Context, id string) (Webhook, record, error) {
	r, err := s.store.get(ctx, webhookEntity, id)
	if err != nil {
		return Webhook{}, record{}, err
	}
	shown, err := s.showWebhooks(ctx, r)
	if err != nil {
		return Webhook{}, record{}, err
	}
	return shown[0], r, nil
}

func (s *Service) getWebhook(ctx context.Context, in *struct{ KeyInput }) (*document[Webhook], error) {
	shown, r, err := s.webhookByID(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &document[Webhook]{ETag: etag(r.version), Status: http.StatusOK, Body: shown}, nil
}

func (s *Service) listWebhooks(ctx context.Context, in *struct{ PageInput }) (*struct{ Body Page[Webhook] }, error) {
	records, next, err := s.store.page(ctx, webhookEntity, nil, in.PageInput)
	if err != nil {
		return nil, err
	}
	items, err := s.showWebhooks(ctx, records...)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Page[Webhook] }{Page[Webhook]{Items: items, Next: next}}, nil
}
