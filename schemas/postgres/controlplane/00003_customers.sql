-- Who is sold what: customers, plans with all their versions, subscriptions.
-- schemas/sales has the documents' types.
--
-- customers, plans and subscriptions have the shape of the other tables: soft
-- deletion, versions that only grow. No topic carries them: what gateways must
-- hear of them are the rules that a subscription writes.

-- +goose Up

-- A customer is a tenant: key is the tenant's id. Whoever changes what a
-- customer has (subscriptions, wallets) first locks this row FOR UPDATE, so
-- that two such changes wait for each other.
CREATE TABLE customers (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- version counts the plan's own versions from 1, deletions among them.
CREATE TABLE plans (
    key        text COLLATE "C" PRIMARY KEY,
    version    bigint      NOT NULL DEFAULT 0,
    document   jsonb,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Every version there ever was of a plan; rows are written once, in the
-- transaction that makes the version, and never changed.
CREATE TABLE plan_versions (
    plan       text COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    document   jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (plan, version)
);

-- One row a subscription, kept when it has ended: it is what invoices are made
-- of. The columns behind document follow from it, for indexes and joins.
CREATE TABLE subscriptions (
    key          text COLLATE "C" PRIMARY KEY,
    version      bigint      NOT NULL DEFAULT 0,
    document     jsonb,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    customer     text COLLATE "C" GENERATED ALWAYS AS (document->>'customer') STORED,
    plan         text COLLATE "C" GENERATED ALWAYS AS (document->>'plan') STORED,
    plan_version bigint GENERATED ALWAYS AS ((document->>'planVersion')::bigint) STORED,
    status       text GENERATED ALWAYS AS (document->>'status') STORED,
    -- when something of it is next to be done (an end, a prorated quota); null is never
    due_at       timestamptz
);
CREATE UNIQUE INDEX subscriptions_active ON subscriptions (customer, plan) WHERE status = 'active';
CREATE INDEX subscriptions_plan ON subscriptions (plan, plan_version, customer) WHERE status = 'active';
CREATE INDEX subscriptions_customer ON subscriptions (customer, key);
CREATE INDEX subscriptions_due ON subscriptions (due_at) WHERE due_at IS NOT NULL;

-- A subscription's overrides are found by it (its rules are by their ids), and
-- those of a page of customers by their subject.
CREATE INDEX overrides_subscription ON overrides ((document->'origin'->>'subscription')) WHERE document->'origin' IS NOT NULL;
CREATE INDEX overrides_tenant ON overrides ((document->'subject'->>'value')) WHERE document->'subject'->>'kind' = 'tenant';
CREATE INDEX rules_tenant ON rules ((document->'subject'->>'value')) WHERE document->'subject'->>'kind' = 'tenant';

-- +goose Down
DROP INDEX rules_tenant, overrides_tenant, overrides_subscription;
DROP TABLE subscriptions, plan_versions, plans, customers;
