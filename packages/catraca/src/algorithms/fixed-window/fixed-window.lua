-- numbers: limit, window, offset; "-1" where a window begins with a key's first request. The step is that of FixedWindow.
local limit, window, offset = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
local first = offset < 0
at = at + 7
local natural = us
if not first then natural = math.floor((us - offset) / window) * window + offset end
if us >= origin + window then
  level = 0
  origin = natural
elseif origin - us > 60000000 then
  step = origin - us
  origin = natural
elseif offset ~= 0 and level == 0 then
  origin = natural
end
lead = origin - us
if origin ~= natural then
  long = true
  longer = (lead + window) / 1000
end
if lend then cost = lend(cost, limit - level) end
passes = level + cost <= limit
