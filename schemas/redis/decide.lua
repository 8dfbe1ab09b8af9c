-- Decisions of a batch, one upon the other: in each, every counter passes and
-- all are charged, or none is.
--
-- KEYS are the keys, each once. ARGV[1] is numbers, little-endian doubles, as
-- are the answer and what rates hold: whole, below 2^53 (struct is a fraction
-- of what text costs Redis). ARGV[1] is decision after decision:
--
--   deadline length {counter}    deadline in µs of this clock, 0 for none;
--                                length is how many numbers the counters are
--
-- and each counter begins with code, key (its place in KEYS) and cost:
--
--   1 key cost capacity limit burst_us burst_rem cost_us cost_rem     gcra
--   2 … and window_us                                          tokenBucket
--   3 key cost capacity window_us at                           fixedWindow
--   4 key cost capacity window_us at                         slidingWindow
--   5 key cost capacity refunded start end expiry overdraft   quota, renewing
--   6 … and carried, used, refunded and carried of the last period, cap,
--     limit then, whether all of it was granted                with rollover
--   7 key cost capacity refunded forfeited overdraft           quota, prepaid
--   8 0 cost                                                    a limit of 0
--   9 key sequence                 a settlement: once for each sequence number
--
-- capacity -1 is unlimited or forced: it passes. X_us and X_rem are the time X
-- units take: whole µs and rem / limit of one more, divided exactly by the
-- caller. at is when a refund's units were used, 0 for now. A start of -1 is
-- not checked; an end of 0 is none. expiry is in s since the epoch, 0 for none.
--
-- The answer is now and, for each decision:
--
--   0|1 {passes a b c}  denied|charged, and each counter with its state after
--   2  WRONG_PERIOD: Redis is not in the period a quota names
--   3  LATE: the deadline has passed
--   4  BROKEN: a key holds something else
--   5  SETTLED before
--
-- In a decision of status 2 to 5 nothing is charged. Nothing is written before
-- everything is judged, and no type of key can refuse what is written. Where
-- Redis refuses writes (OOM, READONLY, too few replicas), it refuses the first,
-- so nothing is charged: what a #!lua line would add is had without it.

local MAX = 9007199254740992 -- 2^53
local NEVER, INTEGER, BROKEN = 8, 5, -1
local WRONG_PERIOD, LATE, SPOILT, SETTLED = 2, 3, 4, 5

local call, number, floor, mod = redis.call, tonumber, math.floor, math.fmod
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local A = {struct.unpack('<' .. string.rep('d', #ARGV[1] / 8), ARGV[1])}

-- By key: kind[k] is how it is read (a counter's code, INTEGER, BROKEN), x, y,
-- z and l its state, dirty[k] that it is to be written, till[k] when it expires,
-- in s. undo holds what the decision under way changed.
local held, was = call('MGET', unpack(KEYS)), {}
local kind, x, y, z, l, dirty, till = {}, {}, {}, {}, {}, {}, {}
local undo, undos = {}, 0

-- MGET answers nil for a key that is no string, too.
local missing, n = {}, 0
for k, text in ipairs(held) do
  if not text then
    n = n + 1
    missing[n] = KEYS[k]
  end
end
if n > 0 and call('EXISTS', unpack(missing)) > 0 then
  for k, text in ipairs(held) do
    if not text and call('EXISTS', KEYS[k]) == 1 then kind[k] = BROKEN end
  end
end

local function whole(v) return v and v >= 0 and v <= MAX and v % 1 == 0 end

local LENGTH = {24, 32, 16, 24}

-- read parses a key once; false where it holds something else.
local function read(k, code)
  if kind[k] then return kind[k] == code end
  local text = held[k]
  kind[k], x[k], y[k], z[k], l[k] = code, 0, 0, 0, 0
  if not text then
    was[k] = 0
    return true
  end
  if code == INTEGER then
    x[k] = number(text)
    was[k] = x[k]
  elseif #text ~= LENGTH[code] then
    x[k] = nil
  elseif code == 3 then
    x[k], y[k] = struct.unpack('<dd', text)
  elseif code == 2 then
    x[k], y[k], l[k], z[k] = struct.unpack('<dddd', text)
  else
    x[k], y[k], z[k] = struct.unpack('<ddd', text)
    l[k] = z[k]
  end
  if whole(x[k]) and whole(y[k]) and whole(z[k]) and whole(l[k]) then return true end
  kind[k] = BROKEN
  return false
end

local function set(k, a, b, c, d)
  local u = undos
  undo[u + 1], undo[u + 2], undo[u + 3], undo[u + 4], undo[u + 5], undo[u + 6] = k, x[k], y[k], z[k], l[k], dirty[k] or false
  undos = u + 6
  x[k], y[k], z[k], l[k], dirty[k] = a, b, c, d, true
end

local function rollback()
  for u = undos - 5, 1, -6 do
    local k = undo[u]
    x[k], y[k], z[k], l[k], dirty[k] = undo[u + 1], undo[u + 2], undo[u + 3], undo[u + 4], undo[u + 5]
  end
  undos = 0
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

-- less is used without what was given back, never below 0.
local function less(used, refund)
  if refund > used then return 0 end
  return used - refund
end

-- Each judge gets where its counter begins, its key and cost, and answers
-- whether it passes and its state after that; nil and a status where it cannot.
-- What takes nothing leaves no trace, not even of when it looked.

-- gcra: x and y / l is the theoretical arrival time, µs. tokenBucket: the same
-- number is when the bucket is full again, so that (x - now) * l / window
-- tokens of z are missing.
local function rate(q, k, cost)
  local code, cap, limit = A[q], A[q + 3], A[q + 4]
  if not read(k, code) then return nil, SPOILT end
  local a, b = x[k], y[k]
  if code == 1 then
    -- Another limit counts in another fraction: rounded up, so that changing a
    -- limit gives nothing away.
    if b > 0 and l[k] ~= limit then a, b = a + 1, 0 end
  elseif (a > now or a == now and b > 0) and (l[k] ~= limit or z[k] ~= A[q + 10]) then
    -- The tokens stay: those missing are counted, to the last fraction, and
    -- missed anew.
    local window, r, m, f = A[q + 9]
    m, r = divide(a - now, l[k], window)
    r = r + b
    m, r = m + floor(r / window) + A[q + 10] - z[k], mod(r, window)
    if m < 0 then m, r = 0, 0 end
    a, f = divide(m, window, limit)
    f = f + r
    a, b = now + a + floor(f / limit), mod(f, limit)
    if a > MAX then a, b = MAX, 0 end
  end
  if a < now then a, b = now, 0 end
  if cost == 0 then return true, a, b end
  local c, d
  if cost > 0 then
    c, d = a + A[q + 7], b + A[q + 8]
    if d >= limit then c, d = c + 1, d - limit end
    local ahead = c - now
    if cap ~= -1 and (cost > cap or ahead > A[q + 5] or ahead == A[q + 5] and d > A[q + 6]) then
      return false, a, b
    end
    if c > MAX then c, d = MAX, 0 end
  else
    c, d = a - A[q + 7], b - A[q + 8]
    if d < 0 then c, d = c - 1, d + limit end
    if c < now then c, d = now, 0 end
    -- Full, and it was: no trace. Full by what was given back is written down,
    -- since the key may say something else of other numbers.
    if c == now and d == 0 and (x[k] < now or x[k] == now and y[k] == 0) then return true, c, d end
  end
  set(k, c, d, code == 2 and A[q + 10] or 0, limit)
  return true, c, d
end

-- fixedWindow: x is the count, y the window's end, µs. A clock that steps back
-- stays in the window the key names: nothing is granted twice.
local function window(q, k, cost)
  local cap, size, at = A[q + 3], A[q + 4], A[q + 5]
  if not read(k, 3) then return nil, SPOILT end
  local a, b = x[k], y[k]
  if b <= now then a, b = 0, now - mod(now, size) + size end
  till[k] = floor(b / 1000000)
  if cost > 0 then
    if cap ~= -1 and cost > cap - a then return false, a, b end
  elseif cap == 0 and cost == 0 then
    return false, a, b
  end
  if cost == 0 or at > 0 and at < b - size then return true, a, b end
  local c = cost > 0 and a + cost or less(a, -cost)
  if c > MAX then c = MAX end
  if c ~= a then set(k, c, b, 0, 0) end
  return true, c, b
end

-- slidingWindow: x counts the running window that ends at y, z the one before.
-- Of that the part counts which the window ending now still covers, rounded up.
local function sliding(q, k, cost)
  local cap, size, at = A[q + 3], A[q + 4], A[q + 5]
  if not read(k, 4) then return nil, SPOILT end
  local a, b, c = x[k], y[k], z[k]
  if b <= now then
    c = 0
    if b + size > now then c = a end
    a, b = 0, now - mod(now, size) + size
  end
  till[k] = floor((b + size) / 1000000)
  if cost > 0 then
    local left = b - now
    if left > size then left = size end
    local weight, part = divide(c, left, size)
    if part > 0 then weight = weight + 1 end
    if cap ~= -1 and cost > cap - a - weight then return false, a, b, c end
  elseif cap == 0 and cost == 0 then
    return false, a, b, c
  end
  if cost == 0 then return true, a, b, c end
  local d, e = a, c
  if at == 0 or at >= b - size then
    if cost > 0 then d = a + cost
    else
      d = less(a, -cost)
      if at == 0 then e = less(c, -cost - (a - d)) end
    end
  elseif at >= b - 2 * size then
    e = cost > 0 and c + cost or less(c, -cost)
  end
  if d > MAX then d = MAX end
  if e > MAX then e = MAX end
  if d ~= a or e ~= c then set(k, d, b, e, 0) end
  return true, d, b, e
end

-- spend charges or refunds a quota of which used may not pass cap.
local function spend(k, r, cost, cap, used, over)
  local c = x[k]
  if cost > 0 then
    if cap ~= -1 and (used >= cap or over == 0 and cost > cap - used) then return false end
    c = c + cost
    if c > MAX then c = MAX end -- not past exactness
    if c ~= x[k] then set(k, c, 0, 0, 0) end
  elseif cost < 0 then
    local d = x[r] - cost
    if d > c then d = c end
    if d ~= x[r] then set(r, d, 0, 0, 0) end
  end
  return true
end

-- carried is what a period has from the last one: its own units that are left,
-- up to a cap. A period's first charge writes it down.
local function carried(q)
  local o, c, r, last = A[q + 9], A[q + 10], A[q + 11], A[q + 12]
  if not (read(o, INTEGER) and read(c, INTEGER) and read(r, INTEGER) and read(last, INTEGER)) then return nil end
  if held[o] or dirty[o] then return x[o] end
  if not (held[c] or dirty[c] or held[last] or A[q + 15] == 1) then return 0 end
  local spent = less(less(x[c], x[r]), x[last])
  return math.min(A[q + 13], less(A[q + 14], spent))
end

-- A renewing quota: x of two keys, consumed and refunded.
local function quota(q, k, cost)
  local cap, r, start, ends = A[q + 3], A[q + 4], A[q + 5], A[q + 6]
  if start >= 0 and (now < start or ends > 0 and now >= ends) then return nil, WRONG_PERIOD end
  if not (read(k, INTEGER) and read(r, INTEGER)) then return nil, SPOILT end
  till[k], till[r] = A[q + 7], A[q + 7]
  local more = 0
  if A[q] == 6 then
    more = carried(q)
    if not more then return nil, SPOILT end
    if cap > 0 then cap = cap + more end
  end
  if cost == 0 then return cap ~= 0, x[k], x[r], more end
  local ok = spend(k, r, cost, cap, less(x[k], x[r]), A[q + 8])
  if ok and cost > 0 and A[q] == 6 then
    local o = A[q + 9]
    till[o] = A[q + 7]
    if not (held[o] or dirty[o]) then set(o, more, 0, 0, 0) end
  end
  return ok, x[k], x[r], more
end

-- A prepaid one: x of three keys, consumed, refunded and forfeited, which never
-- expire.
local function wallet(q, k, cost)
  local r, f = A[q + 4], A[q + 5]
  if not (read(k, INTEGER) and read(r, INTEGER) and read(f, INTEGER)) then return nil, SPOILT end
  local ok = cost == 0 or spend(k, r, cost, A[q + 3], less(x[k], x[r]) + x[f], A[q + 6])
  return ok, x[k], x[r], x[f]
end

local function nothing(_, _, cost) return cost < 0, 0, 0 end

local function settle(q, k, sequence)
  if not read(k, INTEGER) then return nil, SPOILT end
  if x[k] >= sequence then return nil, SETTLED end
  till[k] = floor(now / 1000000) + 2592000 -- 30 days
  set(k, sequence, 0, 0, 0)
  return true, 0, 0
end

local judge = {rate, rate, window, sliding, quota, quota, wallet, nothing, settle}
local numbers = {9, 11, 6, 6, 9, 16, 7, 3, 3}

-- Judge. lost[k] is a counter that denied: nothing charges it, so it is there
-- that a key that lost its expiry gets it back.
local out, o, p, lost, denied = {now}, 2, 1, {}, false
while A[p + 1] do
  local deadline, length = A[p], A[p + 1]
  -- A negative length says that a key is named twice: each counter's state is
  -- that after all of them.
  local again = length < 0
  local from, stop = p + 2, p + 2 + math.abs(length)
  local status, at, q = 1, o + 1, from
  p, undos = stop, 0
  if deadline > 0 and now > deadline then
    status, q = LATE, stop
  end
  while q < stop do
    local code = A[q]
    local ok, a, b, c = judge[code](q, A[q + 1], A[q + 2])
    if ok == nil then
      status = a
      break
    end
    if not ok then
      status, denied = 0, true
      if code ~= NEVER then lost[A[q + 1]] = true end
    end
    out[at], out[at + 1], out[at + 2], out[at + 3] = ok and 1 or 0, a, b, c or 0
    at, q = at + 4, q + numbers[code]
  end
  out[o] = status
  if status ~= 1 then rollback() end
  if status > 1 then
    at = o + 1
  elseif status == 0 or again then
    at, q = o + 1, from
    while q < stop do
      local code = A[q]
      local _, a, b, c = judge[code](q, A[q + 1], 0)
      out[at + 1], out[at + 2], out[at + 3] = a, b, c or 0
      at, q = at + 4, q + numbers[code]
    end
  end
  o = at
end

-- Write. Whole strings of one length overwrite each other, and the expiry is
-- set beside them: SET with an expiry costs Redis twice that.
local texts = {}
local function expire(k)
  local s = till[k]
  -- gcra and tokenBucket: full again, the one expiry that charges move.
  if kind[k] < 3 then s = floor(x[k] / 1000000) + 1 end
  if s and s > 0 then
    texts[s] = texts[s] or string.format('%d000', s)
    call('PEXPIREAT', KEYS[k], texts[s])
  end
end
for k, key in ipairs(KEYS) do
  local code = dirty[k] and kind[k]
  if code then
    if code == INTEGER then
      call('INCRBY', key, x[k] - was[k] < 1000000 and x[k] - was[k] or string.format('%d', x[k] - was[k]))
    elseif code == 3 then
      call('SETRANGE', key, 0, struct.pack('<dd', x[k], y[k]))
    elseif code == 2 then
      call('SETRANGE', key, 0, struct.pack('<dddd', x[k], y[k], l[k], z[k]))
    else
      call('SETRANGE', key, 0, struct.pack('<ddd', x[k], y[k], code == 1 and l[k] or z[k]))
    end
    expire(k)
  elseif denied and lost[k] and held[k] and call('PTTL', key) == -1 then
    expire(k)
  end
end

-- Lengths of what was broken off are cut: o is the next free place.
return struct.pack('<' .. string.rep('d', o - 1), unpack(out, 1, o - 1))
