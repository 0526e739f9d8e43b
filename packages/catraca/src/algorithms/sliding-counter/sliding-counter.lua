-- numbers: limit, window in ticks; with a capital letter µs per tick. The step is that of SlidingCounter.take.
local limit, window, tick, now, grace = ARGV[at + 4] + 0, ARGV[at + 5] + 0, 1, us, 60000000
at = at + 6
if kind == 'C' then
  tick = ARGV[at]
  at = at + 1
  now = math.floor(us / tick)
  grace = grace / tick
end
local natural = math.floor(now / window) * window
if now >= origin + window then
  if now < origin + 2 * window then prior = level else prior = 0 end
  level = 0
  origin = natural
elseif origin - now > grace then
  step = (origin - now) * tick
  origin = natural
end
lead = origin - now
if origin ~= natural then
  long = true
  longer = (lead + 2 * window) * tick / 1000
end
local share = window
if lead < 0 then share = window + lead end
if lend then cost = lend(cost, limit - level - math.floor(prior * share / window), level + math.ceil(prior * share / window)) end
passes = cost <= limit and prior * share < (limit - level - cost + 1) * window
