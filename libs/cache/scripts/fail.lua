-- Ends a run without a value: leaves a record of why, frees the lock, wakes the others.
-- KEYS failure lock; ARGV lock_text record ttl_ms channel wake
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
