-- identity returns the run id of this process, empty where it does not tell, and
-- RUN_ID:REPLID, with the replication id of the data it goes on with (a promotion
-- gives another one); empty, too, where it is a replica. Servers inside a process
-- (those without struct) have neither, and keep nothing.
local function identity()
  if not rawget(_G, 'struct') then
    local zeros = string.rep('0', 40)
    return zeros, zeros .. ':' .. zeros
  end
  local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
  local process = type(server) == 'string' and string.match(server, 'run_id:(%x+)') or ''
  local data = type(replication) == 'string' and string.find(replication, 'role:master', 1, true) and string.match(replication, 'master_replid:(%x+)')
  return process, process ~= '' and data and process .. ':' .. data or ''
end
