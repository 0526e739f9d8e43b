-- Of a counter in parts as of now, as SubWindows has it: from the state `o`, `l`, `rest` and `tick`, `part`, `parts` of its
-- rule the start at which a request is counted, how many parts the newest count lies back, what the parts count that are
-- inside as a whole, what the one that leaves and how many ticks of that are still inside.
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
  if o - now > 60000000 / tick then
    ahead, age = o - now, 0
  else
    if now < o + part then start = o end
    age = math.min(age, (start - o) / part)
  end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
-- Behind the numbers stands the place after them.
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
