-- Tells how a reservation stands (libs/reserve): its numbers and its record, as
-- they are together at one instant.
--
-- KEYS    its state, the attempt that was charged, when it ended, the records of
--         its attempts, the epoch of the tenant's quotas, and the tenant's places
-- ARGV    the attempt whose record is asked for, empty for the one charged
--
-- The answer is whether the quotas are whole here (what was lost may be missing
-- otherwise), now, the three numbers, the record, how many records there are,
-- what is noted as told, and how many places are taken. Numbers are text, all but the first and the sixth
-- counted in µs of this clock.

local _, here = identity()
local clock = redis.call('TIME')
local epoch = redis.call('GET', KEYS[5]) or ''
local held = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local attempt = ARGV[1]
if attempt == '' then attempt = held[2] or '' end
local now = string.format('%d', clock[1] * 1000000 + clock[2])
local records = redis.call('HMGET', KEYS[4], attempt, 'told')
return {
  here ~= '' and string.sub(epoch, 1, #here + 1) == here .. ':' and '1' or '0',
  now,
  held[1] or '0', held[2] or '0', held[3] or '0',
  records[1] or '', tostring(redis.call('HLEN', KEYS[4])), records[2] or '',
  tostring(redis.call('ZCOUNT', KEYS[6], '(' .. now, '+inf')),
}
