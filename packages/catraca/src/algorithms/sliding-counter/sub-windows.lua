-- numbers: limit, ticks of a part, parts, µs per tick. The step is that of SubWindows. `origin` and `level` are start and
-- count of the newest part; behind the name stand the counts of those before, 8 bytes each, which `kept` holds as they were and
-- `tail` as a charge leaves them.
local limit, part, parts, tick = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0, ARGV[at + 7] + 0
at = at + 8
local o, l, rest = origin, level, kept
--@include parts-now
lead = -now
if l > 0 then lead = o - now end
if ahead > 0 then
  step = ahead * tick
  lead = start - now
elseif start > now then
  longer = (start - now + (parts + 1) * part) * tick / 1000
end
use = inside + math.floor(leaving * share / part)
if lend then cost = lend(cost, limit - use, inside + math.ceil(leaving * share / part)) end
passes = cost <= limit and leaving * share < (limit - inside - cost + 1) * part
wait = 0
if not passes and cost <= limit then
  local gone = age
  while inside + cost > limit do
    inside = inside - (counts[parts - gone] or 0)
    gone = gone + 1
  end
  local last, elapsed = counts[parts - gone + 1] or 0, 0
  if last > 0 then elapsed = math.max(0, part - math.ceil((limit - inside - cost + 1) * part / last) + 1) end
  wait = (start + (gone - age) * part + elapsed) * tick - us
end
if charge then
  --@include parts-shift
  origin, level, tail = o, l, rest
end
