-- Forfeits what a grant of a wallet has left at its end: worked out by the use
-- found here, in the step that charges it, so that no unit is both used and
-- forfeited. Numbers are decimal text, as quotas are.
--
-- KEYS    the wallet's consumed, refunded and forfeited, and the epoch
-- ARGV    1 expires, 2 deadline   µs of this clock
--         3 consumed, 4 refunded  what is known of them, at the least
--         5 forfeited             by all grants that have ended
--         6 top, 7 left, 8 bottom, 9 spent   what the grant has left, as a
--                                 function of use (libs/wallet, Claim)
--
-- The answer is a status, now, the three numbers as they are after, and the
-- units that this grant forfeits:
--
--   0  FORFEITED: charged just now
--   1  BEFORE: a call charged it whose answer was not heard: grants end one by
--      one, so what is here beyond those that have ended is this one's
--   2  EARLY: the grant has not expired yet
--   3  LATE: the deadline has passed
--   4  LOST: the quotas here are not whole, or are less than is known; they are
--      to be restored first
--   5  BROKEN: a key holds something else
--
-- Only 0 writes, and a repetition of it is answered 1 with the same units.

local _, here = identity()
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local A, x = {}, {}
for i, text in ipairs(ARGV) do A[i] = tonumber(text) end
local epoch = redis.call('GET', KEYS[4]) or ''
KEYS[4] = nil
for k, text in ipairs(redis.call('MGET', unpack(KEYS))) do
  if text then
    x[k] = (text == '0' or string.find(text, '^[1-9]%d*$')) and tonumber(text) -- as INCRBY reads it
  elseif redis.call('EXISTS', KEYS[k]) == 0 then
    x[k] = 0
  end
  if not x[k] or x[k] < 0 or x[k] > 9007199254740992 or x[k] % 1 > 0 then
    return {5, string.format('%d', now), '0', '0', '0', '0'}
  end
end

local function within(n, most)
  if n < 0 then return 0 elseif n > most then return most end
  return n
end

local status, units = 0, 0
if here == '' or string.sub(epoch, 1, #here + 1) ~= here .. ':' or x[1] < A[3] or x[2] < A[4] or x[3] < A[5] then
  status = 4
elseif x[3] > A[5] then
  status, units = 1, x[3] - A[5]
elseif now < A[1] then
  status = 2
elseif now > A[2] then
  status = 3
else
  local used = x[1] - x[2]
  units = within(A[6] - used, A[7]) + within(A[8] - used, A[9])
  if units > 0 then redis.call('INCRBY', KEYS[3], string.format('%d', units)) end
  x[3] = x[3] + units
end
return {status, string.format('%d', now), string.format('%d', x[1]), string.format('%d', x[2]), string.format('%d', x[3]), string.format('%d', units)}
