-- numbers: limit, then the starts of the previous, the current and the next period and the end of the next, as the
-- caller knows them. `prior` is the end of the period, for rules of another calendar. The step is that of Quota.
local limit, start, stop = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
if us >= stop then
  start, stop = stop, ARGV[at + 7] + 0
  if us >= stop then
    start, stop = stop, ARGV[at + 8] + 0
  end
end
-- The caller's clock is off by more than a period: it asks again with the periods of this time.
if us < start or us >= stop then return { us } end
at = at + 9
if origin < start then
  level = 0
elseif origin - us > 60000000 then
  step = origin - us
elseif origin > us then
  start, stop = origin, prior
  long = true
end
origin = start
prior = stop
lead = start - us
longer = (stop - us) / 1000
if lend then cost = lend(cost, limit - level) end
passes = level + cost <= limit
