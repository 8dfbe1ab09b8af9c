-- A gateway says that it is there, and to which epoch it has reported the totals
-- it knows. KEYS are the epoch and the gateways, ARGV the gateway's name and that
-- epoch, empty for none. The answer is RUN_ID:REPLID of this process and the epoch.

local _, here = identity()
redis.call('HSET', KEYS[2], ARGV[1], redis.call('TIME')[1] .. ' ' .. ARGV[2])
return {here, redis.call('GET', KEYS[1]) or ''}
