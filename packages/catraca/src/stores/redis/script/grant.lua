-- Charges policies with as many units as pass of those asked for, each question by itself.
-- KEYS: a state for each question; then the marker of pulse.lua where it is on this node. ARGV: a new marker, the marker
-- that the caller knows ("" for none), µs at which the memory was lost as the caller knows (0: never), how many policies; then for
-- each of them µs for which a loss matters, "1" where a key without a state then counts as used up, levels per unit, the level of a key used
-- up, how many questions, how many ARGV follow, those of decide.lua with what to do at its length and no cost and no id, and
-- for each question the least and the most units and an id for a list.
-- Answer: for each question that of decide.lua for one policy, then the levels charged; or its error. Then the instant of the
-- loss, and 1 where the marker is another.
--@include time
local lostUs, changed = ARGV[3] + 0, 0
if ARGV[1] ~= '' then
  local markerKey, fresh, known = KEYS[#KEYS], ARGV[1], ARGV[2]
  --@include marker
  lostUs = math.max(lostUs, since)
  if known ~= '' and id ~= known then changed = 1 end
end
local least, unit, full
lend = function(wanted, room)
  if wanted <= room then return wanted end
  return math.max(least, math.floor(room / unit) * unit)
end
local function one(key, at, op, charge)
  local raw
  local member = 1
  --@include one
end
local answers, from, index = {}, 5, 0
for _ = 1, ARGV[4] + 0 do
  lost = nil
  if ARGV[from + 1] == '1' and lostUs > 0 and us < lostUs + ARGV[from] then lost = lostUs end
  unit, full = ARGV[from + 2] + 0, ARGV[from + 3] + 0
  local policy = from + 7
  local at = from + 6 + ARGV[from + 5]
  local stop = at + 3 * ARGV[from + 4]
  while at < stop do
    index = index + 1
    least, most, taker = ARGV[at] * unit, ARGV[at + 1] * unit, ARGV[at + 2]
    local well, answer = pcall(one, KEYS[index], policy, ARGV[policy - 1], true)
    if not well then
      if type(answer) == 'table' then answer = answer.err end
      answer = { tostring(answer) }
    elseif answer.err then
      answer = { answer.err }
    else
      answer[#answer + 1] = granted
    end
    answers[index] = answer
    at = at + 3
  end
  from = stop
end
answers[index + 1] = lostUs
answers[index + 2] = changed
return answers
