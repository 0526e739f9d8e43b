-- Charges policies with as many units as pass under all of them, at least one: all of them or none.
-- ARGV: units at most, levels per unit of each policy, then those of decide.lua at its length.
-- Answer: that of decide.lua for several policies, then the units.
--@include time
local members = #KEYS
local from = 2 + members
local function several(charge)
  local firstKey, op, at = 0, ARGV[from], from + 1
  local read
  --@include many
end
local units, place = ARGV[1] + 0, 0
lend = function(_, room)
  place = place + 1
  units = math.min(units, math.floor(room / ARGV[1 + place]))
  return ARGV[1 + place] + 0
end
local answer = several(false)
if answer.err or #answer == 1 then return answer end
if not passed then units = 1 end
place = 0
lend = function()
  place = place + 1
  return units * ARGV[1 + place]
end
answer = several(true)
if answer.err then return answer end
answer[#answer + 1] = units
return answer
