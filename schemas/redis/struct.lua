-- Redis has struct built in. Servers that only speak its protocol may not (the
-- one inside `sluice dev` where no redis-server is installed): for them, the
-- two functions of it that decide.lua uses, for whole numbers below 2^53 as
-- little-endian doubles ('<ddd'). Nor do they tell a run id; they keep nothing
-- when they end, so that one for all of them does.
local struct = rawget(_G, 'struct')
local inside = not struct and 'run_id:0000000000000000000000000000000000000000'
struct = struct or {
  pack = function(format, ...)
    local out = {}
    for i = 1, #format - 1 do
      local x, sign = select(i, ...), 0
      if x < 0 then x, sign = -x, 128 end
      if x == 0 then
        out[i] = string.rep('\0', 8)
      else
        local m, e = math.frexp(x)
        m, e = (m * 2 - 1) * 4503599627370496, e + 1022
        local bytes = {}
        for b = 1, 6 do
          bytes[b] = m % 256
          m = math.floor(m / 256)
        end
        bytes[7] = m % 16 + e % 16 * 16
        bytes[8] = sign + math.floor(e / 16)
        out[i] = string.char(unpack(bytes))
      end
    end
    return table.concat(out)
  end,
  unpack = function(format, text)
    local out = {}
    for i = 1, #format - 1 do
      local b = {string.byte(text, i * 8 - 7, i * 8)}
      local e = b[8] % 128 * 16 + math.floor(b[7] / 16)
      local m = b[7] % 16
      for at = 6, 1, -1 do m = m * 256 + b[at] end
      local x = 0
      if e > 0 then x = math.ldexp(1 + m / 4503599627370496, e - 1023) end
      out[i] = b[8] > 127 and -x or x
    end
    return unpack(out)
  end,
}
