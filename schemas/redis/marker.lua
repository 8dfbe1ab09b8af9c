-- The marker says whether the quotas beside it are whole. It is RUN_ID:TOKEN
-- once they are, ?RUN_ID:TOKEN while they are restored; where it is of another
-- process, or missing, nobody has begun to.
--
-- KEYS[1] is a marker, ARGV[1] what to do:
--
--   look          nothing
--   begin TOKEN   begin a restore, unless one is under way or the quotas whole
--   reopen TOKEN  begin one though they are said to be whole: others of this
--                 process, in other slots, are not
--   join MARKER   take part in a restore begun in another slot of this process
--   seal MARKER   the quotas are whole, if no other restore was begun since
--   adopt OLD NEW a slot that came to this process whole, by the marker of the
--                 one it came from, has this one's from now on
--
-- The answer is the run id of this process and the marker as it stands now,
-- empty for none.

local marker = redis.call('GET', KEYS[1]) or ''
local of = string.sub(string.gsub(marker, '^%?', ''), 1, 41)
local op, given = ARGV[1], ARGV[2]
local mine = here ~= '' and of == here .. ':'

local after = marker
if op == 'begin' then
  if not mine and here ~= '' then after = '?' .. here .. ':' .. given end
elseif op == 'reopen' then
  if here ~= '' then after = '?' .. here .. ':' .. given end
elseif op == 'join' then
  if string.sub(given, 1, 41) == here .. ':' then after = '?' .. given end
elseif op == 'seal' then
  if mine and marker == '?' .. given then after = given end
elseif op == 'adopt' then
  local old, new = string.match(given, '^(%S+) (%S+)$')
  if marker == old and string.sub(new, 1, 41) == here .. ':' then after = new end
end
if after ~= marker then redis.call('SET', KEYS[1], after) end
return {here, after}
