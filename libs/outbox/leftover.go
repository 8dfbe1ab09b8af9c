package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Leftover returns at most limit rows that lie in the outbox with an id
// greater than after, in the order of their ids. Their commit time is not
// known any more; the time of writing stands in for it.
func Leftover(ctx context.Context, conn *pgx.Conn, after int64, limit int) ([]Row, error) {
	const query = `SELECT id, topic, key, version, payload, headers, created_at FROM outbox WHERE id > $1 ORDER BY id LIMIT $2`
	rows, err := conn.Query(ctx, query, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanRow)
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return found, nil
}

func scanRow(rows pgx.CollectableRow) (Row, error) {
	var r Row
	var payload *string
	err := rows.Scan(&r.ID, &r.Topic, &r.Key, &r.Version, &payload, &r.Headers, &r.CommittedAt)
	if payload != nil {
		r.Payload = []byte(*payload)
	}
	return r, err
}

// Delete removes rows that have been carried.
func Delete(ctx context.Context, conn *pgx.Conn, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, `DELETE FROM outbox WHERE id = ANY($1)`, ids); err != nil {
		return fmt.Errorf("delete from outbox: %w", err)
	}
	return nil
}
