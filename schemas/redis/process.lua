-- here is the run id of this process, false where it does not tell. Servers
-- inside a process (those without struct) have none, and keep nothing.
local here = not rawget(_G, 'struct') and string.rep('0', 40)
if not here then
  local info = redis.pcall('INFO', 'server')
  here = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end
