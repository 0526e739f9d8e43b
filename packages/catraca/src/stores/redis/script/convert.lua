local value, missing = raw, 0
local letter = string.sub(name, 1, 1)
--@include extras
--@include kin
--@include used
local mode = string.sub(op, 2 + member, 2 + member)
if old ~= name then
  moved = true
  if kin(old) then
    if mode == 'r' then
      o, l, q, old, parked, value, follows = 0, 0, 0, name, {}, '', 1
    end
    --@include keep-parked
  else
    --@include park
  end
else
  --@include keep-parked
end
if letter == 's' then kept = string.sub(value, follows) end
if old ~= name then
  local limit, before = string.match(name, '(%d+);$') + 0, string.match(old, '(%d+);$') + 0
  -- count × to ÷ from, rounded up. A product past 2^53 is built bit by bit, so that none of it is lost.
  local function scaled(count, from, to)
    if from == to then return count end
    local whole = math.floor(count / from)
    local left, quotient, rest = count - whole * from, 0, 0
    if left * to <= 9007199254740992 then
      quotient = math.floor(left * to / from)
      rest = left * to - quotient * from
    else
      local bit = 4503599627370496
      local factor = to
      while bit >= 1 do
        quotient, rest = quotient * 2, rest * 2
        if rest >= from then quotient, rest = quotient + 1, rest - from end
        if factor >= bit then
          factor, rest = factor - bit, rest + left
          if rest >= from then quotient, rest = quotient + 1, rest - from end
        end
        bit = bit / 2
      end
    end
    if rest > 0 then quotient = quotient + 1 end
    local sum = whole * to + quotient
    if sum > 9007199254740992 then sum = sum * (1 + 2 ^ -50) end
    return sum
  end
  if letter == 'b' then
    -- Drained by the old rate up to the latest instant that both rules can tell, as Bucket.adopt does.
    local tick, unit, rate = string.match(old, '^b(%d+),(%d+),(%d+)')
    local myTick, myUnit = string.match(name, '^b(%d+),(%d+)')
    tick, unit, rate, myTick, myUnit = tick + 0, unit + 0, rate + 0, myTick + 0, myUnit + 0
    local widest = math.max(tick, myTick)
    local seen = math.max(o, math.floor(us / widest) * widest / tick)
    if seen > o then l = math.max(0, l - (seen - o) * rate) end
    local broken = o - math.floor(us / tick) > 60000000 / tick
    o = math.ceil(seen * tick / myTick)
    if not broken then o = math.min(o, math.floor(us / myTick) + 60000000 / myTick) end
    l = scaled(l, unit, myUnit)
    q = scaled(q, unit, myUnit) + limit * myUnit
  elseif letter == 'c' or letter == 's' then
    o = o * string.match(old, '^%a(%d+)') / string.match(name, '^%a(%d+)')
  end
  if mode == 'p' then
    l = scaled(l, before, limit)
    if letter == 'c' then q = scaled(q, before, limit) end
    local counts = {}
    for from = 1, #kept, 8 do
      counts[#counts + 1] = struct.pack('<d', scaled((struct.unpack('<d', kept, from)), before, limit))
    end
    kept = table.concat(counts)
  end
end
origin, level, prior = o, l, q
if letter ~= 'b' then missing = missing - used(o, l, q, name, kept) end
if missing > 0 then
  if letter == 'b' then
    local tick, unit, rate = string.match(name, '^b(%d+),(%d+),(%d+)')
    local now = math.floor(us / tick)
    if now > origin or origin - now > 60000000 / tick then
      if now > origin then level = math.max(0, level - (now - origin) * rate) end
      origin = now
    end
    local debt = missing * unit
    if debt > 9007199254740992 then debt = debt * (1 + 2 ^ -50) end
    level = math.max(level, debt)
  elseif letter == 's' then
    local tick, part, parts = string.match(name, '^s(%d+),(%d+),(%d+)')
    tick, part, parts = tick + 0, part + 0, parts + 0
    local rest = kept
    --@include parts-now
    --@include parts-shift
    origin, level, kept = o, l + missing, rest
  else
    -- A window that is over counts nothing; the step then finds the current one.
    local start = us
    if letter == 'c' then
      local tick, window = string.match(name, '^c(%d+),(%d+)')
      start = math.floor(math.floor(us / tick) / window) * window
      if origin < start then
        if origin + window == start then prior = level else prior = 0 end
        origin, level = start, 0
      end
    elseif kind == 'f' then
      local window = string.match(name, '^.(%d+)') + 0
      local offset = string.match(name, '^o%d+%+(%d+)') or 0
      if string.sub(name, 1, 1) ~= 'F' then start = math.floor((us - offset) / window) * window + offset end
      if us >= origin + window then origin, level = start, 0 end
    elseif us >= prior then
      for index = at + 5, at + 7 do
        if us >= ARGV[index] + 0 and us < ARGV[index + 1] + 0 then
          origin, level, prior = ARGV[index] + 0, 0, ARGV[index + 1] + 0
        end
      end
    end
    level = level + missing
  end
end
if moved then adopted = struct.pack('<ddc1d', origin, level, 'i', prior) end
