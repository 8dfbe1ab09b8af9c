package pgstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

// Search reads one row more than the page holds, to know whether another page
// follows.
func (s *Store) Search(ctx context.Context, q usagestore.Query) (usagestore.Page, error) {
	after, err := usagestore.ParseCursor(q.Cursor)
	if err != nil {
		return usagestore.Page{}, err
	}
	limit := q.PageLimit()
	sql, args := searchSQL(q, after, limit+1)
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return usagestore.Page{}, fmt.Errorf("search usage events: %w", err)
	}
	events, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return usagestore.Page{}, fmt.Errorf("search usage events: %w", err)
	}
	page := usagestore.Page{Events: events}
	if len(events) > limit {
		page.Events = events[:limit]
		page.Next = usagestore.PositionOf(events[limit-1]).Cursor()
	}
	return page, nil
}

func searchSQL(q usagestore.Query, after *usagestore.Position, rows int) (string, []any) {
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if q.TenantID != "" {
		add("tenant_id = ?", q.TenantID)
	}
	if q.Decision != "" {
		add("decision = ?", q.Decision)
	}
	if !q.From.IsZero() {
		add("ts >= ?", q.From)
	}
	if !q.To.IsZero() {
		add("ts < ?", q.To)
	}
	if after != nil {
		add(`(ts, id COLLATE "C", tenant_id COLLATE "C") < (?, ?, ?)`, time.UnixMilli(after.At), after.ID, after.TenantID)
	}
	sql := "SELECT event FROM usage_events"
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, rows)
	return sql + fmt.Sprintf(` ORDER BY ts DESC, id COLLATE "C" DESC, tenant_id COLLATE "C" DESC LIMIT $%d`, len(args)), args
}
