-- A key without a state counts as used up at the instant at which the memory was lost: what was admitted before is so
-- never admitted twice.
level = full
if kind == 'f' then
  origin = lost
  local window, offset = string.match(name, '^[fo](%d+)%+?(%d*),')
  if window then origin = lost - (lost - ('0' .. offset)) % window end
else
  local tick, window = string.match(name, '^%a(%d+),(%d+)')
  origin = math.floor(lost / tick)
  if kind == 'c' or kind == 'C' or kind == 's' then origin = origin - origin % window end
end
