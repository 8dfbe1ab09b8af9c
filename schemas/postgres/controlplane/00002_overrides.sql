-- Overrides: other numbers for one subject and metric, until a date. The table
-- has the shape of the others: soft deletion, versions that only grow, a view
-- that the relay holds the compacted topic against.

-- +goose Up

CREATE TABLE overrides (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX overrides_metric ON overrides ((document->>'metric'), key) WHERE document IS NOT NULL;

CREATE VIEW overrides_v1 AS SELECT key, version, document::text AS payload FROM overrides;

-- +goose Down
DROP VIEW overrides_v1;
DROP TABLE overrides;
