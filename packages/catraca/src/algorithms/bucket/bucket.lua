-- numbers: capacity in levels; with a capital letter drain per tick in levels and µs per tick, which both are 1 without.
-- The step is that of Bucket.take.
local capacity, rate, tick, now, grace = ARGV[at + 4] + 0, 1, 1, us, 60000000
at = at + 5
if kind == 'B' then
  rate, tick = ARGV[at] + 0, ARGV[at + 1]
  at = at + 2
  now = math.floor(us / tick)
  grace = grace / tick
end
local elapsed = now - origin
if elapsed > 0 then
  local gone = elapsed * rate
  if level > gone then level = level - gone else level = 0 end
elseif elapsed < -grace then
  step = -elapsed * tick
elseif elapsed < 0 then
  lead = -elapsed
  long = true
end
origin = now + lead
if lend then cost = lend(cost, capacity - level) end
passes = level + cost <= capacity
if prior > 0 then long = true end
if lead > 0 or level > capacity then longer = (math.max(level, capacity) / rate + lead) * tick / 1000 end
if reserve then
  passes = reserve(cost, level + cost, capacity, rate, tick, now, lead)
  -- A reservation lasts until it has drained.
  if passes and level + cost > capacity then longer = ((level + cost) / rate + lead) * tick / 1000 end
end
