-- As SubWindows.refund.
local tick, part, parts = string.match(name, '^s(%d+),(%d+),(%d+)')
tick, part, parts = tick + 0, part + 0, parts + 0
--@include parts-now
local index = (o - chargedAt) / part
if index % 1 ~= 0 or index < 0 or index + age >= parts then return 0 end
index = index + 1
give = math.min(asked, counts[index] or 0)
if give == 0 then return 0 end
counts[index] = counts[index] - give
while #counts > 1 and counts[1] == 0 do
  table.remove(counts, 1)
  o = o - part
end
l = counts[1]
rest = struct.pack('<' .. string.rep('d', #counts - 1), unpack(counts, 2))
