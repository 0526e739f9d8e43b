--@include member
if lend then granted = cost end
if charge then
  if writes then
    if not passes then writes = heals end
    if writes then
      for index = 1, #writes do redis.call(unpack(writes[index])) end
    end
  elseif passes then
    if prior == 0 then
      call('PSETEX', key, life, struct.pack('<dd', origin, level + cost) .. extras .. name .. tail)
    else
      call('PSETEX', key, life, struct.pack('<ddc1d', origin, level + cost, 'i', prior) .. extras .. name)
    end
  elseif moved then
    call('PSETEX', key, life, (adopted or struct.pack('<ddc1d', origin, level, 'i', prior)) .. extras .. name .. kept)
  end
  if not passes and not moved and redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, life) end
end
-- A list tells what it waits for, and a counter in parts what it counts instead of its newest part.
level = use or level
if not passes then level = -1 - level end
prior = wait or prior
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if wait then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }
