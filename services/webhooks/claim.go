package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/service"
)

// delivery is one claimed row.
type delivery struct {
	id       int64
	webhook  string
	version  int64 // of the webhook
	url      string
	eventID  string
	body     string
	attempts int // this one included
	giveUpAt time.Time
}

// claimSQL takes what is due, of each webhook as much as it has places left,
// the longest due first. What another process is about to take is passed over.
const claimSQL = `WITH due AS (
	SELECT d.id, w.version, w.url
	FROM (SELECT w.key, w.version, w.document->>'url' AS url FROM ` + open + `) w
	LEFT JOIN unnest($4::text[], $5::int[]) AS b(webhook, n) ON b.webhook = w.key
	CROSS JOIN LATERAL (
		SELECT d.id FROM webhook_deliveries d WHERE d.webhook = w.key AND d.state = 'pending' AND d.due_at <= $1
		ORDER BY d.due_at, d.id LIMIT greatest(0, $3 - coalesce(b.n, 0)) FOR UPDATE SKIP LOCKED) d
)
UPDATE webhook_deliveries d SET due_at = $2, attempts = d.attempts + 1 FROM due WHERE d.id = due.id
RETURNING d.id, d.webhook, due.version, due.url, d.event_id, d.body, d.attempts, d.give_up_at`

// leaseSlack is added to the longest an attempt may take, for what comes
// before and after it.
const leaseSlack = 20 * time.Second

// claim takes deliveries that are due. Each counts as busy from here on.
func (s *Service) claim(ctx context.Context) ([]delivery, error) {
	webhooks, counts := s.places()
	now := s.deps.Now()
	rows, err := s.deps.Pool.Query(ctx, claimSQL, now, now.Add(s.cfg.Timeout+leaseSlack), s.cfg.PerWebhook, webhooks, counts)
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (delivery, error) {
		var d delivery
		return d, row.Scan(&d.id, &d.webhook, &d.version, &d.url, &d.eventID, &d.body, &d.attempts, &d.giveUpAt)
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range claimed {
		s.busy[d.webhook]++
	}
	return claimed, nil
}

// places are the webhooks that something is under way to, and how much.
func (s *Service) places() (webhooks []string, counts []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	webhooks, counts = []string{}, []int32{}
	for webhook, n := range s.busy {
		webhooks, counts = append(webhooks, webhook), append(counts, int32(n))
	}
	return webhooks, counts
}

// leave gives a place back.
func (s *Service) leave(webhook string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[webhook]--; s.busy[webhook] <= 0 {
		delete(s.busy, webhook)
	}
}

// secrets are those that sign now, the newest first.
func (s *Service) secrets(ctx context.Context, webhook string) ([]service.Secret, error) {
	rows, err := s.deps.Pool.Query(ctx, `SELECT sealed FROM webhook_secrets
		WHERE webhook = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY id DESC`, webhook, s.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	sealed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	return s.deps.Sender.Open(webhook, sealed)
}
