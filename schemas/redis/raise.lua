-- Raises numbers of quotas to what is known of them: never lowers one, so that
-- it may be run however often, by anybody, in any order.
--
-- KEYS are the numbers' keys. ARGV are, for each, the number and when its key
-- expires, in s since the epoch, 0 for never. The answer is how many were
-- raised, and how many keys hold something else and stay as they are.

local raised, broken = 0, 0
for i, key in ipairs(KEYS) do
  local floor, expiry = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
  local text = redis.call('MGET', key)[1]
  local known = not text and 0 or (text == '0' or string.find(text, '^[1-9]%d*$')) and tonumber(text) -- as INCRBY reads it
  if not text and redis.call('EXISTS', key) == 1 or not known then
    broken = broken + 1
  elseif not text or floor > known then
    redis.call('SET', key, ARGV[2 * i - 1])
    if expiry ~= '0' then redis.call('EXPIREAT', key, expiry) end
    raised = raised + 1
  end
end
return {raised, broken}
