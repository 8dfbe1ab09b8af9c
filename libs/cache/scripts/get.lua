-- Reads a key's state in one step and, when asked to and nothing usable is there, takes its lock.
-- KEYS value barrier failure lock; ARGV take(0|1) token lease_ms seen want memory_ms
-- The first 17 bytes of each record are a kind and a fencing number of 16 digits (microseconds of Redis's clock, so
-- that numbers go on growing after the data was lost).
local v, b, e, l = unpack(redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4]))
local function fence(s) return s and tonumber(string.sub(s, 2, 17)) or 0 end
local function left(i, s) return s and redis.call('PTTL', KEYS[i]) or -2 end
local vf, bf, ef = fence(v), fence(b), fence(e)
local vt, et, lt = left(1, v), left(3, e), left(4, l)
local seen, want = tonumber(ARGV[4]), tonumber(ARGV[5])
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local function answer(status, f) return {status, f, v, vt, b, e, et, lt, now} end

-- 1: a value newer than what the caller has seen, fresh, or of the very run it waited for.
if v and vf > bf and vf > seen then
  local logical, physical = tonumber(string.sub(v, 18, 29)), tonumber(string.sub(v, 30, 41))
  if (want > 0 and vf >= want) or physical - vt < logical then return answer(1, vf) end
end
local kind = e and string.sub(e, 1, 1)
-- 5: uncacheable of late; 4: the run that the caller waited for failed.
if kind == 'u' or kind == 'p' then return answer(5, ef) end
if e and want > 0 and ef >= want then return answer(4, ef) end
-- 2 again: the reply that said so was lost.
if l and ARGV[1] == '1' and string.sub(l, 18) == ARGV[2] then return answer(2, fence(l)) end
-- 3: somebody loads.
if l then return answer(3, fence(l)) end
-- 4: failures in a row hold loads back.
if kind == 'f' and et > tonumber(ARGV[6]) then return answer(4, ef) end
if ARGV[1] == '0' then return answer(0, 0) end

local f = math.max(now, vf + 1, bf + 1, ef + 1, seen + 1)
redis.call('SET', KEYS[4], 'l' .. string.format('%016.0f', f) .. ARGV[2], 'PX', ARGV[3])
return answer(2, f)
