package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// open are the webhooks that events go to: neither deleted, nor paused, nor
// gone in their present version.
const open = `webhooks w LEFT JOIN webhook_gone g ON g.webhook = w.key AND g.version = w.version
	WHERE w.document IS NOT NULL AND g.webhook IS NULL AND coalesce((w.document->>'enabled')::boolean, true)`

const fanOutSQL = `INSERT INTO webhook_deliveries (webhook, event_id, event_type, event_time, body, state, due_at, give_up_at, created_at)
SELECT w.key, e.id, e.type, e.time, e.body, 'pending', $6, $7, $6
FROM (SELECT w.key, w.document FROM ` + open + `) w
JOIN unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[]) WITH ORDINALITY AS e(id, type, time, body, tenant, n)
  ON (w.document->'eventTypes' IS NULL OR w.document->'eventTypes' ? e.type)
 AND (w.document->>'tenantId' IS NULL OR w.document->>'tenantId' = e.tenant)
ORDER BY w.key, e.n
ON CONFLICT (webhook, event_id) DO NOTHING`

// fanOut writes a delivery for each webhook that wants an event. An error lets
// the batch come again; what was written before stays as it is.
func (s *Service) fanOut(ctx context.Context, batch []stream.Record) error {
	n := len(batch)
	ids, types, bodies, tenants := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	times := make([]time.Time, 0, n)
	for _, r := range batch {
		e, body, err := read(r)
		if err != nil {
			s.metrics.bad.Inc()
			s.deps.Log.Warn("record is no event and is not delivered", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "cause", err)
			continue
		}
		ids, types, times = append(ids, e.ID), append(types, e.Type), append(times, e.Time)
		bodies, tenants = append(bodies, body), append(tenants, tenantOf(e))
	}
	now := s.deps.Now()
	_, err := s.deps.Pool.Exec(ctx, fanOutSQL, ids, types, times, bodies, tenants, now, now.Add(s.cfg.GiveUpAfter))
	if err != nil {
		err = fmt.Errorf("fan out: %w", err)
		s.note(err)
		return err
	}
	s.metrics.events.Add(float64(len(ids)))
	s.poke()
	return nil
}

// read makes the body of a request of a record: the same event, in structured
// mode. What Postgres cannot hold is refused here, for good.
func read(r stream.Record) (quotaevents.Event, string, error) {
	e, err := quotaevents.FromRecord(r.Header, r.Value)
	if err != nil {
		return e, "", err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return e, "", fmt.Errorf("encode event: %w", err)
	}
	if strings.ContainsRune(e.ID+e.Type+string(body), 0) {
		return e, "", fmt.Errorf("event %q holds a NUL", e.ID)
	}
	e.ID, e.Type = strings.ToValidUTF8(e.ID, "\uFFFD"), strings.ToValidUTF8(e.Type, "\uFFFD")
	return e, string(body), nil
}

// tenantOf is whose event it is; empty where its data does not say.
func tenantOf(e quotaevents.Event) string {
	var data struct {
		TenantID string `json:"tenantId"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return strings.ReplaceAll(data.TenantID, "\x00", "\uFFFD")
}
