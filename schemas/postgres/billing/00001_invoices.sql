-- What each customer owed, a row a customer, currency and period: twice the
-- same is not possible, whoever works it out and however often.

-- +goose Up
CREATE TABLE invoices (
    id         text COLLATE "C" PRIMARY KEY,
    customer   text COLLATE "C" NOT NULL,
    currency   text        NOT NULL,
    -- [starts_at, ends_at)
    starts_at  timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL CHECK (ends_at > starts_at),
    status     text        NOT NULL CHECK (status IN ('draft', 'final')),
    -- given when it becomes final
    number     text        UNIQUE CHECK ((number IS NOT NULL) = (status = 'final')),
    -- the sum of the lines, in minor units of the currency
    total      bigint      NOT NULL,
    -- the whole invoice (schemas/sales)
    document   jsonb       NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (customer, currency, starts_at, ends_at)
);
CREATE INDEX invoices_newest ON invoices (ends_at DESC, id DESC);
CREATE INDEX invoices_customer ON invoices (customer, ends_at DESC, id DESC);

-- The last number of each year. A number is taken in the transaction that makes
-- its invoice final, so that none is missing.
CREATE TABLE invoice_numbers (
    year integer PRIMARY KEY,
    last bigint  NOT NULL CHECK (last > 0)
);

-- Up to when a subscription's periods are on final invoices. Its next period
-- begins there, also where its plan's calendar has changed: no time is invoiced
-- twice, and none is left out.
CREATE TABLE invoiced_subscriptions (
    subscription text COLLATE "C" PRIMARY KEY,
    through      timestamptz NOT NULL
);

-- +goose Down
DROP TABLE invoiced_subscriptions, invoice_numbers, invoices;
