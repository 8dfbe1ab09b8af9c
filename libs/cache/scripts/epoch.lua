-- The number of invalidations of a family, counted up from the time it was first asked for, so that a number never comes
-- back after the data was lost. KEYS epoch; ARGV add(0|1)
if redis.call('EXISTS', KEYS[1]) == 0 then
  local t = redis.call('TIME')
  redis.call('SET', KEYS[1], string.format('%.0f', tonumber(t[1]) * 1000000 + tonumber(t[2])))
end
return redis.call('INCRBY', KEYS[1], ARGV[1])
