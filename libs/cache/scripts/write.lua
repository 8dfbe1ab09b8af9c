-- Stores what a run loaded, frees its lock and wakes the others, all or nothing.
-- KEYS value barrier failure lock; ARGV lock_text record physical_ms lease_ms token channel wake
-- Answers {status, fence}: 1 stored; 2 invalidated meanwhile: the lock stays, under the new fence; 0 no longer the owner.
local function fence(s) return s and tonumber(string.sub(s, 2, 17)) or 0 end
local l = redis.call('GET', KEYS[4])
local mine, v = fence(ARGV[1]), redis.call('GET', KEYS[1])
if l ~= ARGV[1] then
  -- A client that lost the first reply sends the same write again.
  if v and fence(v) == mine then return {1, mine} end
  return {0, 0}
end
local bf, vf = fence(redis.call('GET', KEYS[2])), fence(v)
if bf >= mine or vf >= mine then
  local t = redis.call('TIME')
  local f = math.max(tonumber(t[1]) * 1000000 + tonumber(t[2]), bf + 1, vf + 1)
  redis.call('SET', KEYS[4], 'l' .. string.format('%016.0f', f) .. ARGV[5], 'PX', ARGV[4])
  return {2, f}
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('PUBLISH', ARGV[6], ARGV[7])
return {1, mine}
