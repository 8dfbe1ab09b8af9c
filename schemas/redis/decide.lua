-- Decisions of a batch, one upon the other: in each, every counter passes and
-- all are charged, or none is.
--
-- KEYS are the keys, each once. ARGV[1] is numbers, little-endian doubles, as
-- are the answer and what rates hold: whole, below 2^53 (struct is a fraction
-- of what text costs Redis). ARGV[1] is the kind of each key, 1 to 4 as the
-- codes below, 5 for a whole number in decimal, and then decision by decision:
--
--   deadline length {counter}    deadline in µs of this clock, 0 for none;
--                                length is how many numbers the counters are,
--                                negative where a key is named twice in them
--
-- and each counter begins with code, key (its place in KEYS) and cost:
--
--   1 key cost capacity limit burst_us burst_rem cost_us cost_rem     gcra
--   2 … and window_us                                          tokenBucket
--   3 key cost capacity window_us at                           fixedWindow
--   4 key cost capacity window_us at                         slidingWindow
--   5 key cost capacity refunded start end expiry overdraft
--     known                                                    quota, renewing
--   6 … and carried, used, refunded and carried of the last period, cap,
--     limit then, whether all of it was granted, known         with rollover
--   7 key cost capacity refunded forfeited overdraft known     quota, prepaid
--   8 0 cost                                                    a limit of 0
--   9 key from to          a guard: the number is from, and becomes to; from -1
--                          is any number below to
--
-- capacity -1 is unlimited or forced: it passes. X_us and X_rem are the time X
-- units take: whole µs and rem / limit of one more, divided exactly by the
-- caller. at is when a refund's units were used, 0 for now. A start of -1 is
-- not checked; an end of 0 is none. expiry is in s since the epoch, 0 for none.
-- known is the highest numbers of the quota that the caller has seen, consumed
-- and refunded, of a prepaid one forfeited, too: what is found below them was
-- lost, and is raised to them.
--
-- ARGV[2] is there where quotas or guards are, else empty. The last of KEYS is
-- their epoch then, RUN_ID:REPLID:TOKEN of the process whose quotas are whole, and
-- ARGV[2] the one the caller has reported to, or before it has, the run id of the
-- process that its connection leads to. Where the epoch is another, decisions with
-- these are answered RESTORE. It is the caller who sends this only on connections
-- to the process that ARGV[2] names; with a fourth argument (a proxy is in
-- between) the process is asked for its run id as well, and * is any epoch of it.
--
-- ARGV[3] is the call's number, 0 for none. The last of KEYS but the epoch is its
-- idempotency record then: NUMBER:ANSWER, written with the charges. A call of the
-- same number is answered with it, so that a caller whose answer was lost can ask.
--
-- The answer is now and, for each decision:
--
--   0|1 {passes a b [c]}  denied|charged, and each counter with its state after;
--                       c of slidingWindow, rollover and prepaid quotas
--   2  WRONG_PERIOD: Redis is not in the period a quota names
--   3  LATE: the deadline has passed
--   4  BROKEN: a key holds something else
--   5  SETTLED before: a guard's number is another
--   6  RESTORE: it is not known that the quotas here are whole
--
-- In a decision of status 2 to 6 nothing is charged. Nothing is written before
-- everything is judged, and no type of key can refuse what is written. Where
-- Redis refuses writes (OOM, READONLY, too few replicas), it refuses the first,
-- so nothing is charged: what a #!lua line would add is had without it.
--
-- It is flat on purpose: each function and table a script makes costs Redis as
-- much as half a command.

local MAX = 9007199254740992 -- 2^53
local WRONG_PERIOD, LATE, BROKEN, SETTLED, RESTORE = 2, 3, 4, 5, 6
local LENGTH = {24, 32, 16, 24}    -- of what rates hold
local NUMBERS = {9, 11, 6, 6, 11, 18, 10, 3, 4} -- of counters
local ANSWERS = {3, 3, 3, 4, 3, 4, 4, 3, 3}

local call, number, floor, mod = redis.call, tonumber, math.floor, math.fmod
local pack, parse, find = struct.pack, struct.unpack, string.find
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local A = {parse('<' .. string.rep('d', #ARGV[1] / 8), ARGV[1])}

-- Read. kind[k] is what key k is, 0 where it holds something else; x, y, z and
-- l its state, of a number z when it expires, in s, and of slidingWindow l the
-- window. dirty[k] is x as it was before the first charge, false without one;
-- ended[k] is y then. Tables are made at full length: one that grows is copied
-- on its way.
local held = call('MGET', unpack(KEYS))
local whole, once = true, nil
if ARGV[2] ~= '' then
  local epoch = held[#KEYS]
  held[#KEYS], KEYS[#KEYS] = nil, nil
  whole = epoch and (ARGV[2] == epoch and #epoch > 40 or #ARGV[2] == 40 and string.sub(epoch, 1, 41) == ARGV[2] .. ':' or ARGV[2] == '*' and ARGV[4])
  if whole and ARGV[4] then
    local here = redis.pcall('INFO', 'server')
    whole = type(here) == 'string' and find(here, 'run_id:' .. string.sub(epoch, 1, 40), 1, true)
  end
end
if ARGV[3] ~= '0' then
  once = KEYS[#KEYS]
  local answered = held[#KEYS]
  held[#KEYS], KEYS[#KEYS] = nil, nil
  if answered and string.sub(answered, 1, #ARGV[3] + 1) == ARGV[3] .. ':' then
    return string.sub(answered, #ARGV[3] + 2)
  end
end
local kind, dirty, ended = {unpack(KEYS)}, {unpack(KEYS)}, {}
local x, y, z, l = {unpack(KEYS)}, {unpack(KEYS)}, {unpack(KEYS)}, {unpack(KEYS)}
local missing, n = {}, 0
for k, text in ipairs(held) do
  local code, a, b, c, d = A[k], 0, 0, 0, 0
  if not text then
    n = n + 1
    missing[n] = KEYS[k]
  elseif code == 5 then
    -- Lua reads more texts as numbers than INCRBY does: what it would refuse
    -- must be found before the first write.
    a = find(text, '^[1-9]%d*$') and number(text) or 0
    if a > MAX or a == 0 and text ~= '0' then code, a = 0, 0 end
  elseif #text ~= LENGTH[code] then
    code = 0
  else
    if code == 3 then
      a, b = parse('<dd', text)
    elseif code == 2 then
      a, b, d, c = parse('<dddd', text)
    else
      a, b, c = parse('<ddd', text)
      if code == 1 then d = c end
    end
    if not (a >= 0 and a <= MAX and b >= 0 and b <= MAX and c >= 0 and c <= MAX and d >= 0 and d <= MAX) then
      code, a, b, c, d = 0, 0, 0, 0, 0
    end
  end
  kind[k], x[k], y[k], z[k], l[k], dirty[k] = code, a, b, c, d, false
end
-- MGET answers nil for a key that is no string, too.
if n > 0 and call('EXISTS', unpack(missing)) > 0 then
  for k, text in ipairs(held) do
    if not text and call('EXISTS', KEYS[k]) == 1 then kind[k] = 0 end
  end
end

-- set changes a key's state, and notes what it was for the decision under way.
local undo, undos = {}, 0
local function set(k, a, b, c, d)
  local u = undos
  undo[u + 1], undo[u + 2], undo[u + 3], undo[u + 4], undo[u + 5], undo[u + 6] = k, x[k], y[k], z[k], l[k], dirty[k]
  undos = u + 6
  if not dirty[k] then dirty[k], ended[k] = x[k], y[k] end
  x[k], y[k], z[k], l[k] = a, b, c, d
end

-- divide returns a * b / m, whole and remainder, bit by bit where the product
-- would pass 2^53. m is at most 2^51.
local function divide(a, b, m)
  if a * b < MAX then
    local r = mod(a * b, m)
    return (a * b - r) / m, r
  end
  local r = mod(a, m)
  local aq, ar, q, bit = (a - r) / m, r, 0, 1
  while bit * 2 <= b do bit = bit * 2 end
  r = 0
  while bit >= 1 do
    q, r = q * 2, r * 2
    if r >= m then q, r = q + 1, r - m end
    if b >= bit then
      b, q, r = b - bit, q + aq, r + ar
      if r >= m then q, r = q + 1, r - m end
    end
    bit = bit / 2
  end
  return q, r
end

-- Judge. A decision that is charged has its answer from the first pass, unless
-- a key is named twice: then, and when it is not charged, a second one looks at
-- what stands. What takes nothing leaves no trace, not even of when it looked.
-- lost[k] is a counter that denied: nothing charges it, so it is there that a
-- key that lost its expiry gets it back.
local out, o, p, lost, denied = {unpack(A)}, 2, #KEYS + 1, {}, false
out[1] = now
while A[p + 1] do
  local length = A[p + 1]
  local again = length < 0
  if again then length = -length end
  local from, stop = p + 2, p + 2 + length
  local status, at = 1, o + 1
  undos = 0
  if A[p] > 0 and now > A[p] then status = LATE end
  for pass = 1, 2 do
    local q = from
    if status > 1 then q = stop end
    at = o + 1
    while q < stop do
      local code, k, cost = A[q], A[q + 1], A[q + 2]
      if pass == 2 then cost = 0 end
      local ok, a, b, c = true, x[k], y[k], 0
      if kind[k] == 0 and code ~= 8 then
        status = BROKEN
        break

      elseif code <= 2 then
        -- gcra: a and b / limit is the theoretical arrival time, µs.
        -- tokenBucket: the same number is when the bucket is full again, so
        -- that (a - now) * limit / window tokens of the burst are missing.
        local limit = A[q + 4]
        if code == 1 then
          -- Another limit counts in another fraction: rounded up, so that
          -- changing a limit gives nothing away.
          if b > 0 and l[k] ~= limit then a, b = a + 1, 0 end
        elseif (a > now or a == now and b > 0) and (l[k] ~= limit or z[k] ~= A[q + 10]) then
          -- The tokens stay: those missing are counted, to the last fraction,
          -- and missed anew.
          local window = A[q + 9]
          local m, r = divide(a - now, l[k], window)
          r = r + b
          m = m + floor(r / window) + A[q + 10] - z[k]
          r = mod(r, window)
          if m < 0 then m, r = 0, 0 end
          local f
          a, f = divide(m, window, limit)
          f = f + r
          a = now + a + floor(f / limit)
          b = mod(f, limit)
          if a > MAX then a, b = MAX, 0 end
        end
        if a < now then a, b = now, 0 end
        if cost > 0 then
          local t, r = a + A[q + 7], b + A[q + 8]
          if r >= limit then t, r = t + 1, r - limit end
          local ahead, burst = t - now, A[q + 5]
          if A[q + 3] ~= -1 and (cost > A[q + 3] or ahead > burst or ahead == burst and r > A[q + 6]) then
            ok = false
          else
            if t > MAX then t, r = MAX, 0 end
            a, b = t, r
            set(k, a, b, code == 2 and A[q + 10] or 0, limit)
          end
        elseif cost < 0 then
          a, b = a - A[q + 7], b - A[q + 8]
          if b < 0 then a, b = a - 1, b + limit end
          if a < now then a, b = now, 0 end
          -- Full, and it was: no trace. Full by what was given back is written
          -- down, since the key may say something else of other numbers.
          if a > now or b > 0 or x[k] > now or x[k] == now and y[k] > 0 then
            set(k, a, b, code == 2 and A[q + 10] or 0, limit)
          end
        end

      elseif code == 3 then
        -- a: count; b: the window's end, µs. A clock that steps back stays in
        -- the window the key names: nothing is granted twice.
        local cap, size, used = A[q + 3], A[q + 4], A[q + 5]
        if b <= now then a, b = 0, now - mod(now, size) + size end
        if cap ~= -1 and cost >= 0 and (cap == 0 or cost > 0 and cost > cap - a) then
          ok = false
        elseif cost ~= 0 and (used == 0 or used >= b - size) then
          local t = a + cost
          if t < 0 then t = 0 elseif t > MAX then t = MAX end
          if t ~= a then set(k, t, b, 0, 0) end
          a = t
        end

      elseif code == 4 then
        -- a counts the running window that ends at b, c the one before. Of
        -- that the part counts which the window ending now still covers,
        -- rounded up.
        local cap, size, used = A[q + 3], A[q + 4], A[q + 5]
        c = z[k]
        if b <= now then
          c = 0
          if b + size > now then c = a end
          a, b = 0, now - mod(now, size) + size
        end
        if cap ~= -1 and cost >= 0 then
          if cap == 0 then
            ok = false
          elseif cost > 0 then
            local left = b - now
            if left > size then left = size end
            local weight, part = divide(c, left, size)
            if part > 0 then weight = weight + 1 end
            ok = cost <= cap - a - weight
          end
        end
        if ok and cost ~= 0 then
          local t, u = a, c
          if used == 0 or used >= b - size then
            t = a + cost
            if t < 0 then
              if used == 0 then u = u + t end
              t = 0
            end
          elseif used >= b - 2 * size then
            u = c + cost
          end
          if u < 0 then u = 0 elseif u > MAX then u = MAX end
          if t > MAX then t = MAX end
          if t ~= a or u ~= c then set(k, t, b, u, size) end
          a, c = t, u
        end

      elseif code <= 7 then
        -- a: consumed; b: refunded; c: carried, or of a prepaid one forfeited.
        local cap, r, over, known = A[q + 3], A[q + 4], A[q + 8], q + 9
        local used, carry, till = 0, 0, 0
        if not whole then
          status = RESTORE
          break
        end
        if code == 7 then
          over, known = A[q + 6], q + 7
          if kind[A[q + 5]] == 0 then kind[k] = 0 end
          c = x[A[q + 5]]
        elseif A[q + 5] >= 0 and (now < A[q + 5] or A[q + 6] > 0 and now >= A[q + 6]) then
          status = WRONG_PERIOD
          break
        else
          till = A[q + 7]
        end
        if code == 6 then
          -- What a period has from the last one: its own units that are left,
          -- up to a cap. A period's first charge writes it down.
          local e, f, g
          carry, e, f, g = A[q + 9], A[q + 10], A[q + 11], A[q + 12]
          if kind[carry] == 0 or kind[e] == 0 or kind[f] == 0 or kind[g] == 0 then kind[k] = 0 end
          if held[carry] or dirty[carry] then
            c, carry = x[carry], 0
          elseif held[e] or dirty[e] or A[q + 15] == 1 then
            -- Carried units are spent first.
            local spent = x[e] - x[f] - x[g]
            if spent < 0 then spent = 0 end
            c = A[q + 14] - spent
            if c < 0 then c = 0 end
            if c > A[q + 13] then c = A[q + 13] end
          end
          if cap > 0 then cap = cap + c end
        end
        if kind[r] == 0 or kind[k] == 0 then
          status = BROKEN
          break
        end
        -- What was lost alone (a deleted key) comes back, denied or not.
        if code == 6 then known = q + 16 end
        if a < A[known] then
          a = A[known]
          set(k, a, 0, till, 0)
        end
        b = x[r]
        if b < A[known + 1] then
          b = A[known + 1]
          set(r, b, 0, till, 0)
        end
        if code == 7 and c < A[known + 2] then
          c = A[known + 2]
          set(A[q + 5], c, 0, 0, 0)
        end
        used = a - b
        if code == 7 then used = used + c end
        if cost > 0 then
          if cap ~= -1 and (used >= cap or over == 0 and cost > cap - used) then
            ok = false
          else
            a = a + cost
            if a > MAX then a = MAX end -- not past exactness
            if a ~= x[k] then set(k, a, 0, till, 0) end
            if carry > 0 then set(carry, c, 0, till, 0) end
          end
        elseif cost < 0 then
          b = b - cost
          if b > a then b = a end
          if b ~= x[r] then set(r, b, 0, till, 0) end
        else
          ok = cap ~= 0 or code == 7
        end

      elseif code == 8 then
        ok = cost < 0
        a, b = 0, 0

      elseif pass == 1 then
        -- Like a quota, a number that was lost must not be taken for none, where
        -- it has to be a certain one.
        local to = A[q + 3]
        if cost >= 0 and not whole then
          status = RESTORE
          break
        end
        if cost < 0 and a >= to or cost >= 0 and a ~= cost then
          status = SETTLED
          break
        end
        if a ~= to then set(k, to, 0, floor(now / 1000000) + 2592000, 0) end -- for 30 days
      end

      if pass == 1 then
        out[at] = ok and 1 or 0
        if not ok then
          status, denied = 0, true
          if code == 4 then
            lost[k] = (b + A[q + 4]) / 1000000
          elseif code == 3 then
            lost[k] = b / 1000000
          elseif code < 3 then
            lost[k] = 0 -- of what stands when all of this is taken back
          elseif code < 7 then
            lost[k] = A[q + 7]
          end
        end
      end
      out[at + 1], out[at + 2] = a, b
      local m = ANSWERS[code]
      if m == 4 then out[at + 3] = c end
      at, q = at + m, q + NUMBERS[code]
    end
    if pass == 1 then
      if status ~= 1 then
        for u = undos - 5, 1, -6 do
          local k = undo[u]
          x[k], y[k], z[k], l[k], dirty[k] = undo[u + 1], undo[u + 2], undo[u + 3], undo[u + 4], undo[u + 5]
        end
      end
      if status == 1 and not again then break end
    end
  end
  out[o] = status
  if status > 1 then at = o + 1 end
  o, p = at, stop
end

-- Write. Whole strings of one length overwrite each other, and keep their
-- expiry: SET with one costs Redis twice that. It is set with a new key or
-- window, with each charge of gcra and tokenBucket, which are full again later,
-- and of the others now and then, should it have been lost.
local texts, wrote = {}, false
for k, key in ipairs(KEYS) do
  local first, t = dirty[k], 0
  if first then
    local code = kind[k]
    wrote = true
    if code == 5 then
      local d = x[k] - first
      call('INCRBY', key, d == 1 and '1' or string.format('%d', d))
      t = z[k]
    elseif code == 3 then
      call('SETRANGE', key, '0', pack('<dd', x[k], y[k]))
      t = y[k] / 1000000
    elseif code == 4 then
      call('SETRANGE', key, '0', pack('<ddd', x[k], y[k], z[k]))
      t = (y[k] + l[k]) / 1000000
    elseif code == 1 then
      call('SETRANGE', key, '0', pack('<ddd', x[k], y[k], l[k]))
      t = floor(x[k] / 1000000) + 1
    else
      call('SETRANGE', key, '0', pack('<dddd', x[k], y[k], l[k], z[k]))
      t = floor(x[k] / 1000000) + 1
    end
    if code > 2 and held[k] and y[k] == ended[k] and floor(x[k] / 16) == floor(first / 16) then t = 0 end
  elseif denied and lost[k] and held[k] and call('PTTL', key) == -1 then
    t = lost[k]
    if kind[k] < 3 then t = floor(x[k] / 1000000) + 1 end
  end
  if t > 0 then
    texts[t] = texts[t] or string.format('%d000', t)
    call('PEXPIREAT', key, texts[t])
  end
end

local answer = pack('<' .. string.rep('d', o - 1), unpack(out, 1, o - 1))
if once and wrote then
  call('SET', once, ARGV[3] .. ':' .. answer, 'EX', '3600')
end
return answer
