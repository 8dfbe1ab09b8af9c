-- What is known of each quota counter: the highest totals that any usage event
-- carried. Totals only grow, so a row is only ever raised.

-- +goose Up
CREATE TABLE checkpoints (
    -- the counter's identity: its key without a deployment prefix
    counter    text        PRIMARY KEY,
    -- whose use it counts; empty for a counter of no tenant
    tenant     text        NOT NULL,
    metric     text        NOT NULL,
    -- the period the counter counts, such as 202607; empty where it has none
    period     text        NOT NULL,
    consumed   bigint      NOT NULL CHECK (consumed >= 0),
    refunded   bigint      NOT NULL CHECK (refunded >= 0),
    forfeited  bigint      NOT NULL CHECK (forfeited >= 0),
    -- what the newest charge was judged by; null is unlimited
    "limit"    bigint,
    -- when that charge was decided
    charged_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE INDEX checkpoints_tenant ON checkpoints (tenant, period, metric);

-- +goose Down
DROP TABLE checkpoints;
