package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// RotatedSecret is the one answer that holds a new secret.
type RotatedSecret struct {
	Secret      string    `json:"secret" doc:"What requests are signed with from now on. It is shown this once."`
	FormerUntil time.Time `json:"formerUntil" doc:"Until then requests are signed with the former secret, too."`
}

// WebhookTest is what a test came to.
type WebhookTest struct {
	Delivered bool    `json:"delivered" doc:"Whether the endpoint took the event (2xx)."`
	Status    int     `json:"status,omitempty" doc:"The status it answered; absent if it did not."`
	Reason    string  `json:"reason,omitempty" doc:"Why the event was not taken."`
	Response  string  `json:"response,omitempty" doc:"The beginning of what it answered, at most 4 KiB."`
	LatencyMs float64 `json:"latencyMs"`
	EventID   string  `json:"eventId" doc:"The webhook-id of the request."`
}

// testSource is the CloudEvents source of test events.
const testSource = "/sluice/controlplane"

// newWebhookSecret makes a secret and seals it.
func (s *Handlers) newWebhookSecret(id string) (plain service.Secret, sealed string, err error) {
	plain, sealed, err = s.sender.NewSecret(id)
	if errors.Is(err, webhook.ErrNoKeys) {
		err = api.NewProblem(http.StatusConflict, "webhooks-not-configured",
			"secrets cannot be stored: set webhooks.keys in the configuration of the control plane and the webhooks module")
	}
	return plain, sealed, err
}

// addSecret makes sealed the present secret of a webhook.
func (s *Handlers) addSecret(ctx context.Context, tx pgx.Tx, id, sealed string) error {
	_, err := tx.Exec(ctx, `INSERT INTO webhook_secrets (webhook, sealed, created_at) VALUES ($1, $2, $3)`, id, sealed, s.store.Now())
	if err != nil {
		return fmt.Errorf("store secret: %w", err)
	}
	return nil
}

// rotateWebhookSecret is a write of the webhook, so that it is audited.
func (s *Handlers) rotateWebhookSecret(ctx context.Context, in *struct {
	api.KeyInput
	KeepHours int `query:"keepHours" minimum:"0" maximum:"168" default:"24" doc:"How long the former secret goes on signing beside the new one."`
}) (*struct{ Body RotatedSecret }, error) {
	plain, sealed, err := s.newWebhookSecret(in.ID)
	if err != nil {
		return nil, err
	}
	now := s.store.Now()
	until := now.Add(time.Duration(in.KeepHours) * time.Hour)
	_, err = s.store.Apply(ctx, store.Write{
		Entity: store.Webhooks, Key: in.ID, Actor: api.Actor(ctx), Cond: api.Precondition{Any: true},
		Build: func(current []byte, version int64) ([]byte, error) {
			var w Webhook
			if err := json.Unmarshal(current, &w); err != nil {
				return nil, fmt.Errorf("decode stored webhook: %w", err)
			}
			w.Version = version
			return json.Marshal(w)
		},
		Then: func(ctx context.Context, tx pgx.Tx, _, _ store.Record) error {
			if _, err := tx.Exec(ctx, `DELETE FROM webhook_secrets WHERE webhook = $1 AND expires_at IS NOT NULL`, in.ID); err != nil {
				return fmt.Errorf("drop secrets before the former: %w", err)
			}
			if _, err := tx.Exec(ctx, `UPDATE webhook_secrets SET expires_at = $2 WHERE webhook = $1`, in.ID, until); err != nil {
				return fmt.Errorf("end the former secret: %w", err)
			}
			return s.addSecret(ctx, tx, in.ID, sealed)
		},
	})
	if err != nil {
		return nil, err
	}
	return &struct{ Body RotatedSecret }{RotatedSecret{Secret: plain.Reveal(), FormerUntil: until.UTC()}}, nil
}

// webhookSecrets are those that sign now, the newest first.
func (s *Handlers) webhookSecrets(ctx context.Context, id string) ([]service.Secret, error) {
	rows, err := s.store.Pool.Query(ctx, `SELECT sealed FROM webhook_secrets
		WHERE webhook = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY id DESC`, id, s.store.Now())
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	sealed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	secrets, err := s.sender.Open(id, sealed)
	if errors.Is(err, webhook.ErrSecret) {
		return nil, api.NewProblem(http.StatusConflict, "webhook-secret", err.Error()+"; configure the key again, or make a new secret")
	}
	return secrets, err
}

// testWebhook sends from here: the answer is the caller's to see, and nothing
// of it is kept. The request must be answered within its own time.
func (s *Handlers) testWebhook(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body WebhookTest }, error) {
	w, _, err := s.webhookByID(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	secrets, err := s.webhookSecrets(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(quotaevents.Test{Webhook: in.ID, Message: "a test, sent by " + api.Actor(ctx)})
	if err != nil {
		return nil, fmt.Errorf("encode test event: %w", err)
	}
	event := quotaevents.Event{
		SpecVersion: quotaevents.SpecVersion, ID: uuid.NewString(), Source: testSource, Type: quotaevents.TypeTest,
		Time: s.store.Now().UTC().Truncate(time.Millisecond), DataContentType: quotaevents.ContentType, Data: data,
	}
	body, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encode test event: %w", err)
	}
	const share = 5 // a fifth of the request's time is left to answer in
	sending, cancel := context.WithTimeout(ctx, s.requestTimeout-s.requestTimeout/share)
	defer cancel()
	a := s.sender.Send(sending, w.URL, secrets, webhook.Message{ID: event.ID, ContentType: quotaevents.StructuredContentType, Body: body})
	return &struct{ Body WebhookTest }{WebhookTest{
		Delivered: a.Delivered(), Status: a.Status, Reason: a.Reason(), Response: a.Body,
		LatencyMs: float64(a.Took.Microseconds()) / 1000, EventID: event.ID,
	}}, nil
}

// webhookOff is the answer to what only a webhook that is on can do.
func webhookOff(status string) *api.Problem {
	return api.NewProblem(http.StatusConflict, "webhook-off", "the webhook is "+status+", and nothing is delivered; PUT it with enabled true first")
}
