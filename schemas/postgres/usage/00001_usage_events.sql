-- Usage events where there is no Elasticsearch: the same documents, with the
-- columns that are searched beside them.

-- +goose Up
CREATE TABLE usage_events (
    tenant_id   text             NOT NULL,
    id          text             NOT NULL,
    ts          timestamptz      NOT NULL,
    decision    text             NOT NULL,
    status_code smallint         NOT NULL,
    rule_id     text             NOT NULL,
    latency_ms  double precision NOT NULL,
    -- the whole event, as usage.v1 carried it
    event       jsonb            NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- The order of a search: newest first, then id and tenant by bytes.
CREATE INDEX usage_events_newest ON usage_events (ts DESC, id COLLATE "C" DESC, tenant_id COLLATE "C" DESC);
CREATE INDEX usage_events_tenant ON usage_events (tenant_id, ts DESC, id COLLATE "C" DESC);
-- A decision is asked for by its id alone.
CREATE INDEX usage_events_id ON usage_events (id, ts DESC);

-- +goose Down
DROP TABLE usage_events;
