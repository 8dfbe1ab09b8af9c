-- Does what marker.lua does, which it is behind as a function, and tells in the
-- same step whose data the process goes on with: its replication id, another
-- one after each promotion. A master that was made a replica and promoted again
-- has its run id and its marker, and lacks what the one between had not.
--
-- KEYS[2] is the lineage, MARKER REPLID: the replication id with which quotas
-- are whole by that marker. ARGV[3] is the id to note, empty for none; a restore
-- that is begun notes the one it is begun with, so that no copy of this data has
-- the marker without it.
--
-- The answer is marker.lua's, the replication id, empty where this process takes
-- no charges or does not tell, the one that is noted for the marker, empty for
-- none, and 1 where no promotion led to the id: Redis takes a new one, and
-- forgets the second, when it begins a backlog for its first replica and when
-- it gives the backlog up, long after the last one left.

local answer = marker()
local info = redis.pcall('INFO', 'replication')
info = type(info) == 'string' and info or ''
local id = string.find(info, 'role:master', 1, true) and string.match(info, 'master_replid:(%x+)') or ''
local first = string.find(info, 'master_replid2:0+%s') and '1' or ''

local now = string.gsub(answer[2], '^%?', '')
local of, noted = string.match(redis.call('MGET', KEYS[2])[1] or '', '^(%S+) (%x+)$')
if of ~= now then noted = '' end
if id ~= '' and now ~= '' and (ARGV[3] == id or noted == '' and ARGV[1] ~= 'look') then
  redis.pcall('SET', KEYS[2], now .. ' ' .. id) -- refused, it is noted at a later look
  noted = id
end
return {answer[1], answer[2], id, noted, first}
