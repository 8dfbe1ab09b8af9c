-- What was sold in advance: a wallet is a customer's prepaid units of a metric,
-- granted by top-ups. Use is counted in Redis and checkpointed (keeper); here
-- is what was granted and forfeited, and what is left of each grant as of some
-- use (libs/wallet). The control plane grants, the keeper ends what expires;
-- both hold the wallet's row locked meanwhile.

-- +goose Up

-- key is tenant/metric. Besides the document, which grants.v1 carries, a row
-- holds the wallet's state: as of what net use (consumed − refunded) the grants'
-- "left" is, use beyond all grants, units given back to ended ones.
CREATE TABLE wallets (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now(),
    customer   text COLLATE "C" GENERATED ALWAYS AS (document->>'tenantId') STORED,
    metric     text COLLATE "C" GENERATED ALWAYS AS (document->>'metric') STORED,
    granted    bigint GENERATED ALWAYS AS ((document->>'granted')::bigint) STORED CHECK (granted BETWEEN 0 AND 9007199254740991),
    forfeited  bigint NOT NULL DEFAULT 0 CHECK (forfeited >= 0),
    used       bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
    debt       bigint NOT NULL DEFAULT 0 CHECK (debt >= 0),
    returned   bigint NOT NULL DEFAULT 0 CHECK (returned >= 0)
);
CREATE INDEX wallets_customer ON wallets (customer, metric);

CREATE TABLE grants (
    id         text COLLATE "C" PRIMARY KEY,
    wallet     text COLLATE "C" NOT NULL REFERENCES wallets,
    amount     bigint      NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
    "left"     bigint      NOT NULL CHECK ("left" BETWEEN 0 AND amount),
    priority   integer     NOT NULL,
    -- the first instant that it is not usable; null is never
    expires_at timestamptz,
    note       text        NOT NULL,
    granted_at timestamptz NOT NULL,
    -- when what it left was forfeited
    ended_at   timestamptz
);
CREATE INDEX grants_live ON grants (wallet) WHERE ended_at IS NULL;
CREATE INDEX grants_due ON grants (expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL;

-- Every change of a wallet's granted and forfeited: their sums are those two.
-- Rows are only ever added. A grant is granted once and ends once.
CREATE TABLE wallet_ledger (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet   text COLLATE "C" NOT NULL REFERENCES wallets,
    at       timestamptz NOT NULL,
    kind     text        NOT NULL CHECK (kind IN ('topup', 'forfeit')),
    grant_id text COLLATE "C" NOT NULL REFERENCES grants,
    amount   bigint      NOT NULL CHECK (amount >= 0),
    -- net use and balance as they were known right after it
    used     bigint      NOT NULL,
    balance  bigint      NOT NULL,
    actor    text        NOT NULL,
    UNIQUE (grant_id, kind)
);
CREATE INDEX wallet_ledger_wallet ON wallet_ledger (wallet, id);

-- The keys that top-ups came with, and what the first of each was answered: a
-- second row with a key cannot be. request is the SHA-256 of what was asked.
CREATE TABLE topups (
    customer   text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    request    bytea       NOT NULL,
    grant_id   text COLLATE "C" NOT NULL UNIQUE REFERENCES grants,
    answer     jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (customer, key)
);

-- What names a metric for a customer is looked for at each top-up.
CREATE INDEX rules_prepaid ON rules ((document->'subject'->>'value'), (document->>'metric'))
    WHERE document->'limit'->>'kind' = 'prepaid';

CREATE VIEW grants_v1 AS SELECT key, version, document::text AS payload FROM wallets;

-- +goose Down
DROP VIEW grants_v1;
DROP INDEX rules_prepaid;
DROP TABLE topups, wallet_ledger, grants, wallets;
