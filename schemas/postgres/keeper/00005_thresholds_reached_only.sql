-- Keepers no longer store a threshold before it is reached. Rows that only said
-- so would keep it from being announced. Column reached is always true from now
-- on; arming is the limit that use was judged by.

-- +goose Up
DELETE FROM thresholds WHERE NOT reached;

-- +goose Down
-- Nothing was changed that an older keeper needs.
SELECT 1;
