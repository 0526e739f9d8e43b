-- A state under a rule that counts otherwise is kept until it ends; what is used there beyond what is used here is charged
-- here, in units `missing`. Sets o, l, q, `old` to this rule's own state as it was when the key left it, or to none.
if mode ~= 'r' then
  missing = used(o, l, q, old, string.sub(value, follows))
  if missing > 0 then
    local numbers = string.sub(value, 1, 16) .. struct.pack('<c1d', 'i', q)
    if ending > 0 then numbers = numbers .. struct.pack('<c1d', 'r', ending) end
    table.insert(parked, 1, numbers .. string.sub(value, position))
  end
end
o, l, q, old, ending, value, follows = 0, 0, 0, name, 0, '', 1
if mode == 'r' then parked = {} end
local others = 0
for index = 1, #parked do
  local other = parked[index]
  local start = 26
  if string.byte(other, 26) == 114 then start = 35 end
  local theirs = string.match(other, '^%a[^;]*;', start)
  local a, b, c = struct.unpack('<ddxd', other)
  if kin(theirs) then
    o, l, q, old, value, follows = a, b, c, theirs, other, start + #theirs
    if start == 35 then ending = struct.unpack('<d', other, 27) end
  elseif others < 3 and used(a, b, c, theirs, string.sub(other, start + #theirs)) > 0 then
    others = others + 1
    extras = extras .. struct.pack('<c1I4', 'P', #other) .. other
  end
end
