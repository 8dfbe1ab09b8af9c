-- Webhooks: where events are sent to. The table has the shape of the others
-- (soft deletion, versions that only grow), but no topic mirrors it: the
-- webhooks module reads it here.

-- +goose Up

CREATE TABLE webhooks (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- What requests are signed with. A secret must be at hand to sign, so it is
-- kept sealed (libs/webhook), apart from the document: neither REST nor the
-- audit log can show it.
CREATE TABLE webhook_secrets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook    text COLLATE "C" NOT NULL REFERENCES webhooks (key),
    sealed     text        NOT NULL,
    created_at timestamptz NOT NULL,
    -- null is the present one; one that was exchanged signs beside it until then
    expires_at timestamptz
);
CREATE INDEX webhook_secrets_webhook ON webhook_secrets (webhook, id);

-- +goose Down
DROP TABLE webhook_secrets, webhooks;
