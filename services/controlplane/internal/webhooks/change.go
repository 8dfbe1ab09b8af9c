package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// Bounds of a webhook.
const (
	maxWebhookURL   = 2048 // bytes
	maxWebhookTypes = 32
)

// decodeWebhook reads and checks the body of a request; id is the path's, empty
// for POST.
func (s *Handlers) decodeWebhook(ctx context.Context, id string) (Webhook, error) {
	var in Webhook
	if p := api.Decode(ctx, &in); p != nil {
		return in, p
	}
	var c api.Checks
	switch {
	case id == "" && in.ID != "":
		c.Add("id", "is made up by the control plane; leave it out")
	case in.ID != "" && in.ID != id:
		c.Add("id", "must be the one in the path, or be left out")
	}
	if err := s.sender.CheckURL(in.URL); err != nil {
		c.Add("url", "%s", err)
	} else if len(in.URL) > maxWebhookURL || !api.ValidText(in.URL) {
		c.Add("url", "must be at most %d bytes of UTF-8", maxWebhookURL)
	}
	c.Text("description", in.Description, 0, api.MaxName)
	c.Text("tenantId", in.TenantID, 0, api.MaxIdentity)
	if len(in.EventTypes) > maxWebhookTypes {
		c.Add("eventTypes", "must be at most %d", maxWebhookTypes)
	}
	for i, t := range in.EventTypes {
		c.Text(fmt.Sprintf("eventTypes[%d]", i), t, 1, api.MaxIdentity)
	}
	if len(c.Found) > 0 {
		return in, api.Invalid(c.Found...)
	}
	in.ID, in.Status = id, ""
	if in.Enabled == nil {
		in.Enabled = new(true)
	}
	return in, nil
}

// checkTypes refuses types that no event has, for which one would wait for ever,
// but for those of the webhook before: what GET answers can be PUT back.
func (w *Webhook) checkTypes(current []byte) error {
	var before Webhook
	if current != nil {
		if err := json.Unmarshal(current, &before); err != nil {
			return fmt.Errorf("decode stored webhook: %w", err)
		}
	}
	var c api.Checks
	for i, t := range w.EventTypes {
		if !slices.Contains(quotaevents.Types, t) && !slices.Contains(before.EventTypes, t) {
			c.Add(fmt.Sprintf("eventTypes[%d]", i), "must be one of %s", strings.Join(quotaevents.Types, ", "))
		}
	}
	if len(c.Found) > 0 {
		return api.Invalid(c.Found...)
	}
	return nil
}

func (s *Handlers) putWebhook(ctx context.Context, in *api.ChangeInput) (*api.Document[Webhook], error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	want, err := s.decodeWebhook(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.writeWebhook(ctx, want, cond, nil)
}

// deleteWebhook takes the secrets, and what is still to be delivered, with it.
func (s *Handlers) deleteWebhook(ctx context.Context, in *api.ChangeInput) (*struct{}, error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	_, err := s.store.Apply(ctx, store.Write{
		Entity: store.Webhooks, Key: in.ID, Actor: api.Actor(ctx), Cond: cond,
		Then: func(ctx context.Context, tx pgx.Tx, _, _ store.Record) error {
			for _, table := range []string{"webhook_secrets", "webhook_deliveries", "webhook_gone"} {
				if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE webhook = $1`, in.ID); err != nil {
					return fmt.Errorf("delete from %s: %w", table, err)
				}
			}
			return nil
		},
	})
	return nil, err
}
