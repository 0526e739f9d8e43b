-- A key without a state counts as used up at the instant at which the memory was lost: what was admitted before is so
-- never admitted twice.
level = full
if kind == 'f' then
  origin = lost
  if string.sub(name, 1, 1) == 'f' then origin = lost - lost % string.match(name, '^f(%d+)') end
else
  local tick, window = string.match(name, '^%a(%d+),(%d+)')
  origin = math.floor(lost / tick)
  if kind == 'c' or kind == 'C' then origin = origin - origin % window end
end
