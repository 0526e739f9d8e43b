--@include member
if charge then
  if writes then
    if not passes then writes = heals end
    if writes then
      for index = 1, #writes do redis.call(unpack(writes[index])) end
    end
  elseif passes then
    redis.call('SET', key, struct.pack('<ddd', origin, level + cost, prior) .. extras .. name, 'PX', life)
  elseif moved then
    redis.call('SET', key, (adopted or struct.pack('<ddd', origin, level, prior)) .. extras .. name, 'PX', life)
  end
  if not passes and not moved and redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, life) end
end
if not passes then level = -1 - level end
if kind == 'l' then prior = wait end
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if kind == 'l' then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }
