-- A gateway says that it is there, and of which marker it has handed in the
-- highest totals it knows. KEYS are the marker and the gateways, ARGV the
-- gateway's name and that marker, empty for none; with a third, it leaves.
--
-- The answer is that of marker.lua's look.

if ARGV[3] then
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[2], ARGV[1], now[1] .. ' ' .. ARGV[2])
end
return {here, redis.call('GET', KEYS[1]) or ''}
