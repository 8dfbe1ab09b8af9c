-- What is known of reservations, for a Redis that has lost them: the newest
-- attempt of each id. Rows go a day after the end, or when nobody can end them
-- any more.

-- +goose Up
CREATE TABLE reservations (
    tenant    text   NOT NULL,
    id        text   NOT NULL,
    -- when its units count, µs since the epoch; names the attempt
    attempt   bigint NOT NULL,
    -- how far it has come, as in Redis; only grows until it ends
    state     bigint NOT NULL CHECK (state > 0),
    -- when it ended, µs since the epoch; 0 while it is open
    ended_at  bigint NOT NULL,
    -- places of shadow rules that were not charged
    uncharged integer[] NOT NULL,
    -- what it charges; empty where the event of its making has not come
    record    text   NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- +goose Down
DROP TABLE reservations;
