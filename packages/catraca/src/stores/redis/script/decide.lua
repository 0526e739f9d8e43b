-- One question: all its policies are evaluated, then all are charged or none.
-- ARGV of one policy that is taken: the letter of its rule, its name, the cost in levels, the life of its state in ms, and
-- numbers. In general first: "t" to take or "p" to peek, "l" where a rule keeps a list or ".", then a letter for each
-- policy where the numbers of one may change otherwise than by `keep`; then the same for each policy.
-- Answer: µs now, then of each policy the level as of now (−1 − level where it refuses) and what its rule adds; where the
-- first number is negative the last says, bit by bit, which policies answer at length: lead, prior, block, clock step.
local op, at, charge = ARGV[1], 1, true
if #op > 1 then
  at = 2
  charge = string.byte(op) == 116
end
--@include time
if #KEYS == 1 then
  local key, member = KEYS[1], 1
  local raw
  --@include one
end
local members, firstKey = #KEYS, 0
local read
if string.byte(op, 2) == 46 then read = call('MGET', unpack(KEYS)) end
--@include many
