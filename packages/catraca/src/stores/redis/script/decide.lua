-- One question: all its policies are evaluated, then all are charged or none.
-- ARGV: "t" to take or "p" to peek ("T", "P" where a rule keeps a list), with a letter for each policy whose numbers may change otherwise than by `keep`;
-- then for each policy the letter of its rule, its name, the cost in levels, the life of its state in ms, and numbers.
-- Answer: µs now, then of each policy the level as of now (−1 − level where it refuses) and what its rule adds; where the
-- first number is negative the last says, bit by bit, which policies answer at length: lead, prior, block, clock step.
local op = ARGV[1]
local first = string.byte(op)
local charge = first == 116 or first == 84
--@include time
local at = 2
if #KEYS == 1 then
  local key, member = KEYS[1], 1
  local raw
  --@include one
end
local members, firstKey = #KEYS, 0
local read
if first > 96 then read = redis.call('MGET', unpack(KEYS)) end
--@include many
