-- What the webhooks module has to deliver, and what became of it. It joins the
-- control plane's tables webhooks and webhook_secrets when it reads, and refers
-- to neither here: the rooms are migrated apart.

-- +goose Up

CREATE TABLE webhook_deliveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook     text COLLATE "C" NOT NULL,
    -- the CloudEvents id, and the webhook-id of every attempt
    event_id    text        NOT NULL,
    event_type  text        NOT NULL,
    event_time  timestamptz NOT NULL,
    -- the request's body, byte for byte: it is signed anew for each attempt
    body        text        NOT NULL,
    state       text        NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts    integer     NOT NULL DEFAULT 0,
    -- when the next attempt is due; while one is under way, when it is taken
    -- for lost
    due_at      timestamptz NOT NULL,
    give_up_at  timestamptz NOT NULL,
    -- of the last attempt: the answer's status (null: none), and why it failed
    status      integer,
    reason      text        NOT NULL DEFAULT '',
    attempted_at timestamptz,
    created_at  timestamptz NOT NULL,
    -- an event that comes again is not delivered again
    UNIQUE (webhook, event_id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (webhook, state, id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (state, created_at) WHERE state <> 'delivered';
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);

-- Webhooks that answered 410 in a version of theirs. A later version, which is
-- an admin's doing, opens them again.
CREATE TABLE webhook_gone (
    webhook text COLLATE "C" PRIMARY KEY,
    version bigint      NOT NULL,
    at      timestamptz NOT NULL
);

-- +goose Down
DROP TABLE webhook_gone, webhook_deliveries;
