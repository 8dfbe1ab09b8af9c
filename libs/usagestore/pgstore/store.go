package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// pruneRows bounds one delete, so that it neither holds locks long nor delays
// the WAL that rules travel by.
const pruneRows = 5000

// Store implements usagestore.Store.
type Store struct{ pool *pgxpool.Pool }

// New uses the pool, which stays the caller's.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Ready asks for nothing but an answer.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("usage store: %w", err)
	}
	return nil
}

// row is one event on its way: its place in the results and its document.
type row struct {
	place    int
	event    usage.Event
	document string
}

// Put inserts events that are not there yet.
func (s *Store) Put(ctx context.Context, events []usage.Event) ([]usagestore.Result, error) {
	results := make([]usagestore.Result, len(events))
	rows := make([]row, 0, len(events))
	for i, e := range events {
		e = usagestore.Canonical(e)
		document, err := json.Marshal(e)
		if err != nil {
			results[i].Err = refusal("not_encodable", err.Error())
			continue
		}
		rows = append(rows, row{place: i, event: e, document: string(document)})
	}
	if err := s.insert(ctx, rows, results); err != nil {
		return nil, fmt.Errorf("put usage events: %w", err)
	}
	return results, nil
}

// insert halves the batch when its data is refused. Rows that an earlier half
// stored stay; a repetition meets them.
func (s *Store) insert(ctx context.Context, rows []row, results []usagestore.Result) error {
	if len(rows) == 0 {
		return nil
	}
	err := s.insertAll(ctx, rows)
	code, detail, ofData := dataError(err)
	switch {
	case err == nil:
		return nil
	case !ofData:
		return err
	case len(rows) == 1:
		results[rows[0].place].Err = refusal(code, detail)
		return nil
	}
	half := len(rows) / 2
	if err := s.insert(ctx, rows[:half], results); err != nil {
		return err
	}
	return s.insert(ctx, rows[half:], results)
}

const insertSQL = `INSERT INTO usage_events (tenant_id, id, ts, decision, status_code, rule_id, latency_ms, event)
SELECT t, i, s, d, c, r, l, e::jsonb
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[], $6::text[], $7::float8[], $8::text[]) AS n(t, i, s, d, c, r, l, e)
ON CONFLICT (tenant_id, id) DO NOTHING`

func (s *Store) insertAll(ctx context.Context, rows []row) error {
	n := len(rows)
	tenants, ids, decisions, rules, documents := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	times, codes, latencies := make([]time.Time, n), make([]int64, n), make([]float64, n)
	for i, r := range rows {
		tenants[i], ids[i], decisions[i], rules[i], documents[i] = r.event.TenantID, r.event.ID, r.event.Decision, r.event.RuleID, r.document
		times[i], codes[i], latencies[i] = r.event.TS, int64(r.event.StatusCode), r.event.LatencyMs
	}
	_, err := s.pool.Exec(ctx, insertSQL, tenants, ids, times, decisions, codes, rules, latencies, documents)
	return err
}

// dataError tells an error that the rows themselves are at fault for: class 22
// (data exception) and 23 (constraint), and 54000 (an index entry too large).
func dataError(err error) (code, detail string, ok bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return "", "", false
	}
	ok = strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || pg.Code == "54000"
	return pg.Code, pg.Message, ok
}

func refusal(kind, detail string) *usagestore.ItemError {
	return &usagestore.ItemError{Permanent: true, Kind: kind, Detail: detail}
}

// Prune deletes the rows of days before the oldest kept one.
func (s *Store) Prune(ctx context.Context, keepDays int, now time.Time) (n int, err error) {
	const sql = `DELETE FROM usage_events WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage_events WHERE ts < $1 LIMIT $2))`
	for {
		tag, err := s.pool.Exec(ctx, sql, usagestore.OldestKept(keepDays, now), pruneRows)
		if err != nil {
			return n, fmt.Errorf("prune usage events: %w", err)
		}
		n += int(tag.RowsAffected())
		if tag.RowsAffected() < pruneRows {
			return n, nil
		}
	}
}

// Get returns the newest event with the id, whichever tenant's.
func (s *Store) Get(ctx context.Context, id string) (usage.Event, error) {
	rows, err := s.pool.Query(ctx, `SELECT event FROM usage_events WHERE id = $1 ORDER BY ts DESC LIMIT 1`, id)
	if err != nil {
		return usage.Event{}, fmt.Errorf("get usage event: %w", err)
	}
	events, err := pgx.CollectRows(rows, scan)
	switch {
	case err != nil:
		return usage.Event{}, fmt.Errorf("get usage event: %w", err)
	case len(events) == 0:
		return usage.Event{}, usagestore.ErrNotFound
	}
	return events[0], nil
}

func scan(r pgx.CollectableRow) (usage.Event, error) {
	var e usage.Event
	var document []byte
	if err := r.Scan(&document); err != nil {
		return e, err
	}
	if err := json.Unmarshal(document, &e); err != nil {
		return e, fmt.Errorf("decode: %w", err)
	}
	return usagestore.Canonical(e), nil
}
