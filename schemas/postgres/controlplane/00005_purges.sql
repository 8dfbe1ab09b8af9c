-- Purges: which stored answers the gateways' caches may not serve any more.
-- The table has the shape of the others. A purge is retired (soft-deleted) when
-- no answer can be left that is older than it.

-- +goose Up

CREATE TABLE purges (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX purges_age ON purges (updated_at) WHERE document IS NOT NULL;

CREATE VIEW purges_v1 AS SELECT key, version, document::text AS payload FROM purges;

-- +goose Down
DROP VIEW purges_v1;
DROP TABLE purges;
