local value, missing = redis.call('GET', key), 0
--@include extras
--@include kin
--@include used
local mode = string.sub(op, 2 + member, 2 + member)
moved, whole = true, true
if old == name or (kin(old) and mode ~= 'r') then
  --@include keep-parked
elseif kin(old) then
  o, l, q, ending, value, follows = 0, 0, 0, 0, '', 1
else
  --@include park
end
local rest = string.sub(value, follows)
count = q % 67108864
local gone = (q - count) / 67108864
rest = string.sub(rest, gone * 20 + 1, (gone + count) * 20)
missing = missing - used(o, l, count, name, rest)
if missing > 0 then
  o = math.max(o, us)
  ending = math.max(ending, o + span)
  rest = rest .. struct.pack('<ddI4', ending, 0, missing)
  count = count + 1
  l = l + missing
end
origin, level, head, last = o, l, 0, ending
text = string.rep(' ', base) .. rest
