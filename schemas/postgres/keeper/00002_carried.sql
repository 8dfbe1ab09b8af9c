-- What a quota with rollover carries from its last period is fixed by the first
-- charge of a period; a restore needs it as it needs what was consumed.

-- +goose Up
-- null where the quota carries nothing over
ALTER TABLE checkpoints ADD COLUMN carried bigint CHECK (carried >= 0);

-- +goose Down
ALTER TABLE checkpoints DROP COLUMN carried;
