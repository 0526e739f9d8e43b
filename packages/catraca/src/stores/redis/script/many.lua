local values, lives, rings, healed, reply = {}, {}, {}, {}, { us }
local all, mask, bit = true, 0, 1
for member = 1, members do
  local key = KEYS[firstKey + member]
  local raw
  if read then raw = read[member] end
  --@include member
  if charge then
    lives[member] = life
    if kind == 'l' then
      rings[member] = writes
      healed[member] = heals
    else
      if prior == 0 then
        values[member] = struct.pack('<dd', origin, level + cost) .. extras .. name .. tail
      else
        values[member] = struct.pack('<ddc1d', origin, level + cost, 'i', prior) .. extras .. name
      end
      if moved then
        local value = (adopted or struct.pack('<ddc1d', origin, level, 'i', prior)) .. extras .. name .. kept
        healed[member] = { { 'PSETEX', key, life, value } }
      end
    end
  end
  level = use or level
  if not passes then
    all = false
    level = -1 - level
  end
  local size = #reply
  reply[size + 1] = level
  if long then
    prior = wait or prior
    mask = mask + bit
    reply[size + 2], reply[size + 3], reply[size + 4], reply[size + 5] = lead, prior, blocked, step
  elseif wait then
    reply[size + 2], reply[size + 3] = lead, wait
  elseif kind == 'c' or kind == 'C' then
    reply[size + 2] = prior
  end
  bit = bit * 2
end
passed = all
if charge then
  for member = 1, members do
    if all and values[member] then
      call('PSETEX', KEYS[firstKey + member], lives[member], values[member])
    else
      local commands = healed[member]
      if all then commands = rings[member] end
      if commands then
        for index = 1, #commands do redis.call(unpack(commands[index])) end
      elseif redis.call('PTTL', KEYS[firstKey + member]) == -1 then
        redis.call('PEXPIRE', KEYS[firstKey + member], lives[member])
      end
    end
  end
end
if mask > 0 then
  reply[1] = -us
  reply[#reply + 1] = mask
end
return reply
