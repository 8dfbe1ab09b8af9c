package webhooks

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"
)

// WebhookDelivery is one event on its way to one webhook.
type WebhookDelivery struct {
	ID          int64      `json:"id"`
	EventID     string     `json:"eventId" doc:"The CloudEvents id, and the webhook-id of every attempt."`
	EventType   string     `json:"eventType"`
	EventTime   time.Time  `json:"eventTime"`
	State       string     `json:"state" enum:"pending,delivered,dead" doc:"dead: given up, until it is redelivered."`
	Attempts    int        `json:"attempts"`
	DueAt       *time.Time `json:"dueAt,omitempty" doc:"When the next attempt is due; of pending ones."`
	GiveUpAt    time.Time  `json:"giveUpAt"`
	Status      *int       `json:"status,omitempty" doc:"What the last attempt was answered; absent if it was not."`
	Reason      string     `json:"reason,omitempty" doc:"Why the last attempt failed."`
	AttemptedAt *time.Time `json:"attemptedAt,omitempty"`
	CreatedAt   time.Time  `json:"createdAt"`
}

// Redelivered says how much is under way again.
type Redelivered struct {
	Count int64 `json:"count"`
}

type deliveriesInput struct {
	api.KeyInput
	api.PageInput
	State string `query:"state" enum:"pending,delivered,dead" doc:"Only deliveries in this state."`
}

const deliveryList = "webhook-delivery" // the kind of list, in cursors

const deliveryColumns = `id, event_id, event_type, event_time, state, attempts, CASE WHEN state = 'pending' THEN due_at END, give_up_at, status, reason, attempted_at, created_at`

func (s *Handlers) listDeliveries(ctx context.Context, in *deliveriesInput) (*struct{ Body api.Page[WebhookDelivery] }, error) {
	if _, err := s.store.Get(ctx, store.Webhooks, in.ID); err != nil {
		return nil, err
	}
	before, p := deliveryCursor(in.Cursor)
	if p != nil {
		return nil, p
	}
	rows, err := s.store.Pool.Query(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries
		WHERE webhook = $1 AND ($2 = '' OR state = $2) AND ($3::bigint = 0 OR id < $3) ORDER BY id DESC LIMIT $4`, in.ID, in.State, before, in.Limit+1)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	items, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	page := api.Page[WebhookDelivery]{Items: items}
	if len(items) > in.Limit {
		page.Items = items[:in.Limit]
		page.Next = api.EncodeCursor(deliveryList, strconv.FormatInt(page.Items[in.Limit-1].ID, 10))
	}
	if page.Items == nil {
		page.Items = []WebhookDelivery{} // an empty page is [], not null
	}
	return &struct{ Body api.Page[WebhookDelivery] }{page}, nil
}

func deliveryCursor(cursor string) (int64, *api.Problem) {
	last, p := api.DecodeCursor(deliveryList, cursor)
	if p != nil || last == "" {
		return 0, p
	}
	id, err := strconv.ParseInt(last, 10, 64)
	if err != nil || id < 1 {
		return 0, api.Invalid(api.InQuery("cursor", "must be the next of an earlier page of this list"))
	}
	return id, nil
}

func scanDelivery(row pgx.CollectableRow) (WebhookDelivery, error) {
	var d WebhookDelivery
	err := row.Scan(&d.ID, &d.EventID, &d.EventType, &d.EventTime, &d.State, &d.Attempts, &d.DueAt, &d.GiveUpAt, &d.Status, &d.Reason, &d.AttemptedAt, &d.CreatedAt)
	d.EventTime, d.GiveUpAt, d.CreatedAt = d.EventTime.UTC(), d.GiveUpAt.UTC(), d.CreatedAt.UTC()
	for _, at := range []*time.Time{d.DueAt, d.AttemptedAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
	return d, err
}

// again sets deliveries going anew, with all the time they had at first.
const again = `UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = $2, give_up_at = $3 WHERE webhook = $1`

func (s *Handlers) redeliver(ctx context.Context, in *struct {
	api.KeyInput
	Delivery int64 `path:"delivery" minimum:"1" doc:"The delivery's id."`
}) (*struct{ Body WebhookDelivery }, error) {
	if err := s.webhookIsOn(ctx, in.ID); err != nil {
		return nil, err
	}
	now := s.store.Now()
	rows, err := s.store.Pool.Query(ctx, again+` AND id = $4 RETURNING `+deliveryColumns, in.ID, now, now.Add(s.sender.GiveUpAfter()), in.Delivery)
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	if len(found) == 0 {
		return nil, api.NotFound()
	}
	return &struct{ Body WebhookDelivery }{found[0]}, nil
}

func (s *Handlers) redeliverDead(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body Redelivered }, error) {
	if err := s.webhookIsOn(ctx, in.ID); err != nil {
		return nil, err
	}
	now := s.store.Now()
	tag, err := s.store.Pool.Exec(ctx, again+` AND state = 'dead'`, in.ID, now, now.Add(s.sender.GiveUpAfter()))
	if err != nil {
		return nil, fmt.Errorf("redeliver dead letters: %w", err)
	}
	return &struct{ Body Redelivered }{Redelivered{Count: tag.RowsAffected()}}, nil
}

func (s *Handlers) webhookIsOn(ctx context.Context, id string) error {
	w, _, err := s.webhookByID(ctx, id)
	if err != nil {
		return err
	}
	if w.Status != webhookActive {
		return webhookOff(w.Status)
	}
	return nil
}
