-- One decision: judge every counter, then charge all of them or none.
--
-- KEYS[i] is counter i's key; a key may be named more than once. ARGV holds,
-- counter after counter, a letter and that algorithm's numbers:
--
--   g cost capacity limit burst_us burst_rem cost_us cost_rem    gcra
--   f cost capacity window_us                                    fixedWindow
--   q cost capacity start_us end_us                              quota, renewing
--   n cost capacity                                              a rate of 0
--
-- capacity -1 is unlimited, 0 denies everything. X_us and X_rem are the time X
-- units take: whole microseconds and rem / limit of one more, divided exactly
-- by the caller, since a product of two numbers might pass 2^53 here.
--
-- Answers are arrays of integers; a and b are the state after the decision:
--
--   0|1, now_us, then for each counter: allowed, a, b            denied|allowed
--   2, now_us                     WRONG_PERIOD: Redis is not in that period
--   3, now_us, i                  BROKEN: KEYS[i] holds something else
--
-- Nothing is written before everything is read and judged, and every charge is
-- a SET, which no type of key can refuse. Where Redis refuses writes (OOM,
-- READONLY, too few replicas), it refuses the first, so nothing is charged:
-- what a #!lua line would add is had without it, on Redis 6 and miniredis too.
--
-- It is flat on purpose: each table and function a script makes costs Redis as
-- much as a command does. An algorithm is one branch in Judge, where it reads
-- its numbers, its state and the state as it is now, and one in Charge.

local MAX = 9007199254740992 -- 2^53
local GRACE_MS = 259200000 -- 72 h: late refunds find a quota's key

local call, number, match, format = redis.call, tonumber, string.match, string.format
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- MGET answers nil for a key that is no string, too; Judge tells them apart.
local held = call('MGET', unpack(KEYS))

-- judged[i]: ok; x, y, the state before the decision as it stands now; x2, y2,
-- the state after it; till, when the key expires, ms. last[key] is the latest
-- counter that takes from the key: the next one with it is judged upon that,
-- and the last one is written.
local judged, last, allowed = {}, {}, true

-- Judge.
local at = 1
for i, key in ipairs(KEYS) do
  local alg, cost, capacity = ARGV[at], number(ARGV[at + 1]), number(ARGV[at + 2])
  local text, twin = held[i], last[key]
  if not text and alg ~= 'n' and call('EXISTS', key) == 1 then return {3, now, i} end
  local x, y, fits, x2, y2, till, limit, stride = 0, 0, false, 0, 0, 0, 0, 3

  if alg == 'g' then
    -- x: theoretical arrival time in whole µs; y / limit: the fraction of one
    -- more. The key holds tat, or tat:rem:limit where there is a fraction.
    local of = 0
    limit, stride = number(ARGV[at + 3]), 8
    if text then
      x = number(text)
      if not x then
        x, y, of = match(text, '^(%d+):(%d+):(%d+)$')
        x, y, of = number(x), number(y), number(of)
        if not of or y >= of or of > MAX then return {3, now, i} end
      end
      if x < 0 or x > MAX or x % 1 ~= 0 then return {3, now, i} end
    end
    -- Another limit counts in another fraction: rounded up, so that changing a
    -- limit gives nothing away.
    if y > 0 and of ~= limit then x, y = x + 1, 0 end
    if x < now then x, y = now, 0 end
    x2, y2 = x, y
    if twin then
      x2, y2 = twin.x2, twin.y2
      if y2 > 0 and twin.limit ~= limit then x2, y2 = x2 + 1, 0 end
    end
    local tat, rem = x2 + ARGV[at + 6], y2 + ARGV[at + 7]
    if rem >= limit then tat, rem = tat + 1, rem - limit end
    local ahead, burst = tat - now, number(ARGV[at + 4])
    fits = cost == 0 or cost <= capacity and
      (ahead < burst or ahead == burst and rem <= number(ARGV[at + 5]))
    if fits then x2, y2 = tat, rem end
    -- Full again: the one expiry that charges move.
    till = x2 / 1000 + 1

  elseif alg == 'f' then
    -- x: count; y: the window's end, µs. The key holds count:end. A clock that
    -- steps back stays in the window the key names: nothing is granted twice.
    stride = 4
    if text then
      x, y = match(text, '^(%d+):(%d+)$')
      x, y = number(x), number(y)
      if not y or x > MAX or y > MAX then return {3, now, i} end
    end
    if y <= now then
      local window = number(ARGV[at + 3])
      x, y = 0, now - math.fmod(now, window) + window
    end
    x2, y2, till = twin and twin.x2 or x, y, y / 1000
    fits = capacity == -1 or capacity > 0 and (cost == 0 or cost <= capacity - x2)
    if fits then x2 = x2 + cost end

  elseif alg == 'q' then
    -- x: consumed in the period, what the key holds. Refunds will have a key
    -- of their own.
    local ends = number(ARGV[at + 4])
    stride = 5
    if now < number(ARGV[at + 3]) or now >= ends then return {2, now} end
    if text then
      x = number(text)
      if not x or x < 0 or x > MAX or x % 1 ~= 0 then return {3, now, i} end
    end
    x2, till = twin and twin.x2 or x, ends / 1000 + GRACE_MS
    fits = capacity == -1 or capacity > 0 and (cost == 0 or cost <= capacity - x2)
    if fits then
      x2 = x2 + cost
      if x2 > MAX then x2 = MAX end -- unlimited goes on, but not past exactness
    end

  end -- n has neither state nor a key of its own

  local c = {alg = alg, ok = fits, x = x, y = y, x2 = x2, y2 = y2, till = till, limit = limit}
  judged[i], allowed = c, allowed and fits
  if fits and cost > 0 then last[key] = c end
  at = at + stride
end

-- Charge. Who takes nothing leaves no trace, not even of when it looked.
if allowed then
  for key, c in pairs(last) do
    -- %d, since Lua prints large numbers with an exponent, and Redis spends
    -- more on one than format does.
    local value
    if c.alg == 'f' then
      value = format('%d:%d', c.x2, c.y2)
    elseif c.alg == 'g' and c.y2 > 0 then
      value = format('%d:%d:%d', c.x2, c.y2, c.limit)
    else
      value = format('%d', c.x2)
    end
    call('SET', key, value, 'PXAT', format('%d', math.ceil(c.till)))
  end
end

-- Answer. Nothing charges a counter that denies, so it is here that a key that
-- lost its expiry gets it back; a charge sets it anyway.
local answer = {allowed and 1 or 0, now}
for i, c in ipairs(judged) do
  local x, y, key = c.x, c.y, KEYS[i]
  local l = last[key]
  if allowed and l then
    x, y = l.x2, l.y2
    if c.alg == 'g' and y > 0 and l.limit ~= c.limit then x, y = x + 1, 0 end
  elseif not c.ok and held[i] and c.alg ~= 'n' and call('PTTL', key) == -1 then
    call('PEXPIREAT', key, format('%d', math.ceil(c.till)))
  end
  answer[3 * i], answer[3 * i + 1], answer[3 * i + 2] = c.ok and 1 or 0, x, y
end
return answer
