package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
func (s *Service) decodeWebhook(ctx context.Context, id string) (Webhook, error) {
	var in Webhook
	if p := decodeBody(callOf(ctx).body, &in); p != nil {
		return in, p
	}
	var c keyCheck
	switch {
	case id == "" && in.ID != "":
		c.add("id", "is made up by the control plane; leave it out")
	case in.ID != "" && in.ID != id:
		c.add("id", "must be the one in the path, or be left out")
	}
	if err := s.deps.Webhooks.CheckURL(in.URL); err != nil {
		c.add("url", "%s", err)
	} else if len(in.URL) > maxWebhookURL || !validText(in.URL) {
		c.add("url", "must be at most %d bytes of UTF-8", maxWebhookURL)
	}
	c.text("description", in.Description, 0, maxKeyName)
	c.text("tenantId", in.TenantID, 0, maxIdentity)
	if len(in.EventTypes) > maxWebhookTypes {
		c.add("eventTypes", "must be at most %d", maxWebhookTypes)
	}
	for i, t := range in.EventTypes {
		c.text(fmt.Sprintf("eventTypes[%d]", i), t, 1, maxIdentity)
	}
	if len(c.found) > 0 {
		return in, invalid(c.found...)
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
	var c keyCheck
	for i, t := range w.EventTypes {
		if !slices.Contains(quotaevents.Types, t) && !slices.Contains(before.EventTypes, t) {
			c.add(fmt.Sprintf("eventTypes[%d]", i), "must be one of %s", strings.Join(quotaevents.Types, ", "))
		}
	}
	if len(c.found) > 0 {
		return invalid(c.found...)
	}
	return nil
}

func (s *Service) putWebhook(ctx context.Context, in *changeInput) (*document[Webhook], error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
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
func (s *Service) deleteWebhook(ctx context.Context, in *changeInput) (*struct{}, error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return nil, p
	}
	_, err := s.store.apply(ctx, write{
		entity: webhookEntity, key: in.ID, actor: callOf(ctx).who.name, cond: cond,
		then: func(ctx context.Context, tx pgx.Tx, _, _ record) error {
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
