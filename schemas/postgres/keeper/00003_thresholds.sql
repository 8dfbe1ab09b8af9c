-- Which thresholds of quotas were reached, each once an arming. A row is only
-- ever added, or raised from armed to reached.

-- +goose Up
CREATE TABLE thresholds (
    -- the counter's identity, which holds its period
    counter   text        NOT NULL,
    -- 80% of the limit, or 50000 units
    threshold text        NOT NULL,
    -- the limit that use was judged by, or unlimited
    arming    text        NOT NULL,
    -- false: under this limit use was seen below the threshold, which another
    -- limit had announced before; so it may be announced once more
    reached   boolean     NOT NULL,
    -- of the event that was published; null while it is only armed
    event_id  uuid,
    used      bigint,
    at        timestamptz NOT NULL,
    PRIMARY KEY (counter, threshold, arming)
);

-- +goose Down
DROP TABLE thresholds;
