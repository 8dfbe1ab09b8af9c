-- The epoch says whether the quotas beside it are whole: RUN_ID:REPLID:TOKEN once
-- they are, ? before it while they are restored. One of another process or of
-- other data, or none, says that nobody has begun to restore them.
--
-- KEYS[1] is an epoch, ARGV[1] what to do:
--
--   look          nothing
--   begin TOKEN   begin a restore, unless one is under way or the quotas whole
--   reopen TOKEN  begin one though they are said to be whole: others of this
--                 process, in other slots, are not
--   join EPOCH    take part in a restore begun in another slot of this process
--   seal EPOCH    the quotas are whole, if no other restore was begun since
--
-- The answer is RUN_ID:REPLID and the epoch as it stands now, empty for none: of
-- this process, but for join and seal, which do not ask for it, since there is one
-- of them a slot. Whoever reads an epoch compares it with the process: in another
-- one it says nothing.

local epoch = redis.call('GET', KEYS[1]) or ''
local op, given = ARGV[1], ARGV[2]
local here
if op == 'join' or op == 'seal' then
  here = string.sub(given, 1, 81)
else
  local _
  _, here = identity()
end
local function ours(text) return here ~= '' and string.sub(text, 1, #here + 1) == here .. ':' end
local mine = ours((string.gsub(epoch, '^%?', '')))

local after = epoch
if op == 'begin' then
  if not mine and here ~= '' then after = '?' .. here .. ':' .. given end
elseif op == 'reopen' then
  if here ~= '' then after = '?' .. here .. ':' .. given end
elseif op == 'join' then
  if ours(given) then after = '?' .. given end
elseif op == 'seal' then
  if mine and epoch == '?' .. given then after = given end
end
if after ~= epoch then redis.call('SET', KEYS[1], after) end
return {here, after}
