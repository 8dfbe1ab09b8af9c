-- Writes down an attempt to reserve (libs/reserve) where the tenant has a place
-- for it: only so many may be open at once.
--
-- KEYS    the records of the reservation's attempts, and the tenant's places
-- ARGV    the attempt, its record, when the records expire (s since the epoch),
--         the name of its place, until when it is kept should nobody give it
--         back, now (µs of this clock), and how many places there are
--
-- The answer is 1; 0 where the attempt is there already, -1 where every place is
-- taken: then nothing is written.

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[6])
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 0 end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return -1 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
redis.call('EXPIREAT', KEYS[1], ARGV[3])
redis.call('EXPIREAT', KEYS[2], ARGV[3])
return 1
