-- What the control plane owns: rules, services (the catalog), API keys, and
-- who changed them.
--
-- The first three tables have one shape. A row is soft-deleted by setting its
-- document to null: its version goes on growing when the key is used again,
-- and the view tells a tombstone from a key that never was. Keys sort by byte
-- (collation C), so that a page's cursor means the same on every server.

-- +goose Up

CREATE TABLE rules (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX rules_service ON rules ((document->'scope'->>'service'), key) WHERE document IS NOT NULL;
CREATE INDEX rules_metric ON rules ((document->>'metric'), key) WHERE document IS NOT NULL;

CREATE TABLE catalog (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);
-- A route prefix belongs to one live service.
CREATE UNIQUE INDEX catalog_prefix ON catalog ((document->>'prefix')) WHERE document IS NOT NULL;

CREATE TABLE api_keys (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_keys_tenant ON api_keys ((document->>'tenantId'), key) WHERE document IS NOT NULL;

-- Written in the transaction of the change itself. Holds no secret: documents
-- of API keys lie here without their hash.
CREATE TABLE audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL,
    actor   text        NOT NULL,
    action  text        NOT NULL CHECK (action IN ('create', 'update', 'delete')),
    kind    text        NOT NULL,
    key     text COLLATE "C" NOT NULL,
    version bigint      NOT NULL,
    before  jsonb,
    after   jsonb
);
CREATE INDEX audit_key ON audit (kind, key, id);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_at ON audit (at);

-- What the relay holds the compacted topics against. payload is the text that
-- the outbox carried for the same version, byte for byte.
CREATE VIEW rules_v1 AS SELECT key, version, document::text AS payload FROM rules;
CREATE VIEW catalog_v1 AS SELECT key, version, document::text AS payload FROM catalog;
CREATE VIEW keys_v1 AS SELECT key, version, document::text AS payload FROM api_keys;

-- +goose Down
DROP VIEW keys_v1, catalog_v1, rules_v1;
DROP TABLE audit, api_keys, catalog, rules;
