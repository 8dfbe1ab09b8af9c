-- A gateway says that it is there, and of which marker it has handed in the
-- highest totals it knows. KEYS are the marker and the gateways, ARGV the
-- gateway's name and that marker, empty for none; with a third, it leaves.
--
-- The answer is that of marker.lua's look, now in µs of this clock, and each
-- gateway with what it said last.

local clock = redis.call('TIME')
if ARGV[3] then
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[2], ARGV[1], clock[1] .. ' ' .. ARGV[2])
end
local answer = {here, redis.call('GET', KEYS[1]) or '', string.format('%d', clock[1] * 1000000 + clock[2])}
for _, field in ipairs(redis.call('HGETALL', KEYS[2])) do answer[#answer + 1] = field end
return answer
