-- Raises the barrier: no value that a run began to load before this instant is stored or fresh any more.
-- KEYS value barrier failure lock; ARGV kind(s|h) barrier_ms channel key
local function fence(s) return s and tonumber(string.sub(s, 2, 17)) or 0 end
local v, b, e, l = unpack(redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4]))
local t = redis.call('TIME')
local f = math.max(tonumber(t[1]) * 1000000 + tonumber(t[2]), fence(v) + 1, fence(b) + 1, fence(l) + 1)
local text, ms = string.format('%016.0f', f), tonumber(ARGV[2])
if ARGV[1] == 'h' then
  redis.call('DEL', KEYS[1])
elseif v then
  -- The barrier outlives the value that it marks.
  ms = math.max(ms, redis.call('PTTL', KEYS[1]) + 1000)
end
local kind, since = ARGV[1], f
if b and fence(b) > fence(v) then
  -- Stale already: it has been so since the first time, or the limits would move on with each call; cleared stays cleared.
  since = tonumber(string.sub(b, 18, 33))
  if string.sub(b, 1, 1) == 'h' then kind = 'h' end
end
redis.call('SET', KEYS[2], kind .. text .. string.format('%016.0f', since), 'PX', string.format('%.0f', ms))
if e and string.sub(e, 1, 1) ~= 'f' then redis.call('DEL', KEYS[3]) end
redis.call('PUBLISH', ARGV[3], kind .. text .. ARGV[4])
return f
