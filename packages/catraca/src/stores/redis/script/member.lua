local kind, name, cost, life = ARGV[at], ARGV[at + 1], (most or ARGV[at + 2]) + 0, ARGV[at + 3]
local origin, level, prior, blocked, lead, step, keep = 0, 0, 0, 0, 0, 0, 0
local passes, long, moved, longer, writes, heals, adopted, wait, use
local extras, kept, tail = '', '', ''
if kind ~= 'l' then
  if raw == nil then raw = call('GET', key) end
  if raw then
    if string.sub(raw, 17) == name then
      origin, level = struct.unpack('<dd', raw)
    elseif string.sub(raw, 26) == name and string.byte(raw, 17) == 105 then
      origin, level, prior = struct.unpack('<ddxd', raw)
    elseif kind == 's' and string.sub(raw, 17, 16 + #name) == name then
      origin, level = struct.unpack('<dd', raw)
      kept = string.sub(raw, 17 + #name)
    else
      --@include convert
    end
  elseif lost then
    --@include lost
  end
end
if kind == 'b' or kind == 'B' then
  --@include bucket
elseif kind == 'c' or kind == 'C' then
  --@include sliding-counter
elseif kind == 's' then
  --@include sub-windows
elseif kind == 'f' then
  --@include fixed-window
elseif kind == 'q' then
  --@include quota
else
  --@include ring
end
if blocked > 0 then
  passes = false
  long = true
end
if step > 0 then
  long = true
  moved = true
  adopted = nil
end
if longer and longer + 1000 > life + 0 then life = string.format('%.0f', longer + 1000) end
if keep > 0 and keep > life + 0 then life = string.format('%.0f', keep) end
