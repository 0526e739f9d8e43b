-- Charges a policy of the bucket family if its units start soon enough. ARGV: µs from now by which they must, "1" for a
-- queue, then those of decide.lua for one policy at its length. Answer: that of decide.lua. The step is Bucket.startsIn.
local op, at, charge = ARGV[3], 4, true
--@include time
local soon, shapes = ARGV[1] + 0, ARGV[2] == '1'
local function ceiling(levels, rate)
  local quotient = math.floor(levels / rate)
  if quotient * rate < levels then return quotient + 1 end
  if (quotient - 1) * rate >= levels then return quotient - 1 end
  return quotient
end
reserve = function(cost, after, capacity, rate, tick, now, lead)
  local over = after - capacity
  if cost > capacity or after > 9007199254740992 or (shapes and over > 0) then return false end
  if shapes then over = after end
  if over <= 0 then return true end
  return (now + ceiling(over, rate) + lead) * tick - us <= soon
end
local key, member = KEYS[1], 1
local raw
--@include one
