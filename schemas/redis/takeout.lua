-- Brings a quota to other numbers in a restore, if it is as it was looked at:
-- what calls charged that were lost with the Redis before is taken out of it.
--
-- KEYS are the marker beside it, what it consumed and refunded, and a note of
-- that. ARGV are the marker, what was consumed and refunded, what both become,
-- when the keys expire, in s since the epoch, 0 for never, and 1 where it may be
-- done once only in this restore: the note says so, for an hour.
--
-- The answer is 1 where it is done, now or before, 0 where the quota has changed,
-- -1 where the restore is over.

local held = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
if held[1] ~= ARGV[1] then return -1 end
if (held[2] or '0') ~= ARGV[2] or (held[3] or '0') ~= ARGV[3] then return 0 end
if ARGV[7] == '1' then
  if held[4] == ARGV[1] then return 1 end
  redis.call('SET', KEYS[4], ARGV[1], 'EX', 3600)
end
for i = 2, 3 do
  -- A key that holds something else stays as it is.
  if ARGV[i] ~= ARGV[i + 2] and (held[i] or redis.call('EXISTS', KEYS[i]) == 0) then
    redis.call('SET', KEYS[i], ARGV[i + 2])
    if ARGV[6] ~= '0' then redis.call('EXPIREAT', KEYS[i], ARGV[6]) end
  end
end
return 1
