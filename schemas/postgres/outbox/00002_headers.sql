-- Headers of the record, for topics whose contract has some (CloudEvents in
-- Kafka's binary mode). Null is none; the relay's own headers come besides.

-- +goose Up
ALTER TABLE outbox ADD COLUMN headers jsonb;

-- +goose Down
ALTER TABLE outbox DROP COLUMN headers;
