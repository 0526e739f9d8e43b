-- Makes the part of `start` the newest one.
if age > parts then
  l, rest = 0, ''
elseif age > 0 then
  rest = string.sub(string.rep('\0', 8 * (age - 1)) .. struct.pack('<d', l) .. rest, 1, 8 * parts)
  l = 0
end
o = start
