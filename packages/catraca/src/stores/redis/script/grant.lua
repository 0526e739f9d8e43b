-- Charges one policy with as many units as pass of those asked for.
-- KEYS: the state; the marker of pulse.lua where it is on this node. ARGV: a new marker, the marker that the caller knows
-- ("" for none), µs at which the memory was lost as the caller knows (0: never), µs for which that matters, "1" where a key
-- without a state then counts as used up, the least levels to be given, levels per unit, the level of a key used up; then
-- as decide.lua, with what to do at its length, the most levels as its cost.
-- Answer: as decide.lua of one policy, then the levels charged, the instant of the loss, 1 where the marker is another.
--@include time
local lostUs, changed = ARGV[3] + 0, 0
if KEYS[2] then
  local markerKey, fresh, known = KEYS[2], ARGV[1], ARGV[2]
  --@include marker
  lostUs = math.max(lostUs, since)
  if known ~= '' and id ~= known then changed = 1 end
end
if ARGV[5] == '1' and lostUs > 0 and us < lostUs + ARGV[4] then lost = lostUs end
local least, unit, full = ARGV[6] + 0, ARGV[7] + 0, ARGV[8] + 0
lend = function(most, room)
  if most <= room then return most end
  return math.max(least, math.floor(room / unit) * unit)
end
local function one(key, at, op, charge)
  local raw
  local member = 1
  --@include one
end
local answer = one(KEYS[1], 10, ARGV[9], true)
if answer.err then return answer end
answer[#answer + 1] = granted
answer[#answer + 1] = lostUs
answer[#answer + 1] = changed
return answer
