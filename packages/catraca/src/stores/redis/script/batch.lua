-- Many questions that do not know of each other. ARGV: how many; then for each how many policies, how many ARGV, and
-- those of decide.lua. The answer to a question that failed is its error.
--@include time
local function one(key, at, op, charge)
  local raw
  local member = 1
  --@include one
end
local function many(firstKey, members, at, op, charge)
  local read
  --@include many
end
local answers, at, firstKey = {}, 2, 0
for index = 1, ARGV[1] + 0 do
  local members, length = ARGV[at] + 0, ARGV[at + 1] + 0
  local op, from, charge = ARGV[at + 2], at + 2, true
  if #op > 1 then
    from = at + 3
    charge = string.byte(op) == 116
  end
  local well, answer
  if members == 1 then
    well, answer = pcall(one, KEYS[firstKey + 1], from, op, charge)
  else
    well, answer = pcall(many, firstKey, members, from, op, charge)
  end
  if not well then
    if type(answer) == 'table' then answer = answer.err end
    answer = { tostring(answer) }
  elseif answer.err then
    answer = { answer.err }
  end
  answers[index] = answer
  firstKey = firstKey + members
  at = at + 2 + length
end
return answers
