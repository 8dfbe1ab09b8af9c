-- The outbox carries every fact that another process must hear: it is written
-- in the transaction of the fact itself, read from the WAL by the relay, and
-- deleted once Kafka has acknowledged the record.

-- +goose Up

-- All versions of all compacted topics come from this one sequence, so that a
-- key which is deleted and created again never goes back.
CREATE SEQUENCE sluice_version AS bigint;

CREATE TABLE outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic      text        NOT NULL,
    key        text        NOT NULL,
    version    bigint      NOT NULL,
    -- null is a tombstone
    payload    text,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Only inserts: the relay's own deletes must not come back to it.
CREATE PUBLICATION sluice_outbox FOR TABLE outbox WITH (publish = 'insert');

-- +goose Down
DROP PUBLICATION sluice_outbox;
DROP TABLE outbox;
DROP SEQUENCE sluice_version;
