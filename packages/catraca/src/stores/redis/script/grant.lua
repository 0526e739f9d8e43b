-- Charges policies with as many units as pass of those asked for, each question by itself.
-- KEYS: a state for each question; then the marker of pulse.lua where it is on this node. ARGV: a new marker, the marker
-- that the caller knows ("" for none), µs at which the memory was lost as the caller knows (0: never), how many questions;
-- then for each µs for which a loss matters, "1" where a key without a state then counts as used up, the least levels to be
-- given, levels per unit, the level of a key used up, how many ARGV follow, and those of decide.lua, with what to do at its
-- length and the most levels as its cost.
-- Answer: for each question that of decide.lua for one policy, then the levels charged; or its error. Then the instant of the
-- loss, and 1 where the marker is another.
--@include time
local lostUs, changed, count = ARGV[3] + 0, 0, ARGV[4] + 0
if #KEYS > count then
  local markerKey, fresh, known = KEYS[count + 1], ARGV[1], ARGV[2]
  --@include marker
  lostUs = math.max(lostUs, since)
  if known ~= '' and id ~= known then changed = 1 end
end
local least, unit, full
lend = function(most, room)
  if most <= room then return most end
  return math.max(least, math.floor(room / unit) * unit)
end
local function one(key, at, op, charge)
  local raw
  local member = 1
  --@include one
end
local answers, from = {}, 5
for index = 1, count do
  lost = nil
  if ARGV[from + 1] == '1' and lostUs > 0 and us < lostUs + ARGV[from] then lost = lostUs end
  least, unit, full = ARGV[from + 2] + 0, ARGV[from + 3] + 0, ARGV[from + 4] + 0
  local well, answer = pcall(one, KEYS[index], from + 7, ARGV[from + 6], true)
  if not well then
    if type(answer) == 'table' then answer = answer.err end
    answer = { tostring(answer) }
  elseif answer.err then
    answer = { answer.err }
  else
    answer[#answer + 1] = granted
  end
  answers[index] = answer
  from = from + 6 + ARGV[from + 5]
end
answers[count + 1] = lostUs
answers[count + 2] = changed
return answers
