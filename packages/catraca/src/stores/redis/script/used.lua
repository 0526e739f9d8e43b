-- Units in use now in a state: numbers, name, what follows it.
local function used(o, l, q, rule, rest)
  local k = string.sub(rule, 1, 1)
  if k == 'b' then
    local tick, unit, rate = string.match(rule, '^b(%d+),(%d+),(%d+),')
    local elapsed = math.floor(us / tick) - o
    if elapsed > 0 then l = math.max(0, l - elapsed * rate) end
    local units = math.floor(l / unit)
    if units * unit < l then units = units + 1 end
    return units
  elseif k == 'f' or k == 'F' or k == 'o' then
    if us >= o + string.match(rule, '^.(%d+)') then return 0 end
    return l
  elseif k == 'c' then
    local tick, window = string.match(rule, '^c(%d+),(%d+),')
    local now = math.floor(us / tick)
    window = window + 0
    if now >= o + 2 * window then return 0 end
    if now >= o + window then return math.ceil(l * (o + 2 * window - now) / window) end
    return l + math.ceil(q * (window - math.max(0, now - o)) / window)
  elseif k == 's' then
    local tick, part, parts = string.match(rule, '^s(%d+),(%d+),(%d+)')
    tick, part, parts = tick + 0, part + 0, parts + 0
    --@include parts-now
    return inside + math.ceil(leaving * share / part)
  elseif k == 'q' then
    if us >= q then return 0 end
    return l
  end
  local units, time = 0, math.max(us, o)
  for from = (q - q % 67108864) / 67108864 * 20 + 1, #rest, 20 do
    local ends, _, own = struct.unpack('<ddI4', rest, from)
    if ends > time then units = units + own end
  end
  return units
end
