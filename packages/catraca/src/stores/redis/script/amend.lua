-- Changes one key otherwise than by asking. ARGV: what ("c" charge unasked, "s" charge unasked up to twice the limit in
-- use, which says how many units; "r" refund, "n" renew a permit, "b" block,
-- "g" reset), then as decide.lua for "c" and "s", which say at their length what to do; for the others name, life in ms, and what
-- each needs.
local key, op = KEYS[1], ARGV[1]
--@include time
if string.byte(op) == 99 or string.byte(op) == 115 then
  local at, member, charge = 2, 1, true
  local raw
  local asked, unit = ARGV[3], 1
  local limitOf = string.match(asked, '(%d+);$') + 0
  if string.byte(asked) == 98 then unit = string.match(asked, '^b%d+,(%d+)') + 0 end
  if string.byte(op) == 115 then
    -- What is weighed counts rounded up, as it is used.
    lend = function(wanted, room, counted)
      if counted then room = limitOf - counted end
      return math.max(0, math.min(wanted, math.floor((room + limitOf * unit) / unit) * unit))
    end
  end
  --@include member
  if lend and cost == 0 then return 0 end
  if kind == 'b' or kind == 'B' then
    -- A debt lasts until it is paid.
    local tick, rate = string.match(name, '^b(%d+),%d+,(%d+)')
    local paid = ((level + cost) / rate + lead) * tick / 1000
    if paid + 1000 > life + 0 then life = string.format('%.0f', paid + 1000) end
  end
  if writes then
    for index = 1, #writes do redis.call(unpack(writes[index])) end
  else
    call('PSETEX', key, life, struct.pack('<ddc1d', origin, level + cost, 'i', prior) .. extras .. name .. tail)
  end
  if lend then return cost / unit end
  return 1
end
local name, life = ARGV[2], ARGV[3]
local letter = string.sub(name, 1, 1)
local list = letter == 'l' or letter == 'p'
local blocked, extras, keep = 0, '', 0
if op == 'b' or op == 'g' then
  local value = redis.call('GET', key)
  local numbers, rest = struct.pack('<ddc1d', 0, 0, 'i', 0), name
  if list then numbers = numbers .. struct.pack('<c1d', 'r', 0) end
  if value then
    --@include extras
    if op == 'b' then
      numbers, rest = string.sub(value, 1, 16) .. struct.pack('<c1d', 'i', q), string.sub(value, follows - #old)
      if ending > 0 then numbers = numbers .. struct.pack('<c1d', 'r', ending) end
      if blocked > 0 then
        local from = string.find(extras, struct.pack('<c1d', 'x', us + blocked), 1, true)
        extras = string.sub(extras, 1, from - 1) .. string.sub(extras, from + 9)
      end
      --@include keep-parked
      -- Its end was taken away.
      if keep < 0 and letter == 'q' then keep = math.ceil((q - us) / 1000) + 1000 end
    end
  end
  if op == 'b' then
    if ARGV[4] ~= '0' then extras = extras .. struct.pack('<c1d', 'x', us + ARGV[4]) end
    keep = math.max(keep, math.ceil(ARGV[4] / 1000))
  elseif not value then
    return 0
  else
    extras, keep = struct.pack('<c1d', 'g', us), 0
  end
  if keep > life + 0 then life = string.format('%.0f', keep) end
  call('PSETEX', key, life, numbers .. extras .. rest)
  return 1
end
-- Of a list in place, so that one permit of many costs little.
if list then
  local text = redis.call('GETRANGE', key, 0, 1023)
  if text == '' then return 0 end
  local theirs = string.byte(text, 26) == 114 and string.match(text, '^[lp]%d+,%d+;', 35)
  local base = 34
  if theirs then
    base = base + #theirs
  else
    local value = redis.call('GET', key)
    --@include extras
    local reset = string.match(extras, 'g(........)')
    if reset and struct.unpack('<d', reset) >= ARGV[7] + 0 then return 0 end
    theirs, base = old, follows - 1
  end
  if string.sub(theirs, 1, 1) ~= letter then return 0 end
  local newest, used, head, last = struct.unpack('<ddxdxd', text)
  local count = head % 67108864
  head = (head - count) / 67108864
  local time = math.max(us, newest)
  if newest - us > 60000000 then time = newest end
  local from, chunk = head + count, ''
  for index = head + count - 1, head, -1 do
    if index < from then
      from = math.max(head, index - 63)
      chunk = redis.call('GETRANGE', key, base + from * 20, base + index * 20 + 19)
    end
    local ends, id, units = struct.unpack('<ddI4', chunk, (index - from) * 20 + 1)
    if id == ARGV[4] + 0 then
      if ends <= time or units == 0 then return 0 end
      local give = math.min(units, ARGV[5] + 0)
      redis.call('SETRANGE', key, base + index * 20 + 16, struct.pack('<I4', units - give))
      if op == 'n' then
        last = math.max(last, time + ARGV[6])
        redis.call('SETRANGE', key, base + (head + count) * 20, struct.pack('<ddI4', last, id, give))
        redis.call('SETRANGE', key, 0, struct.pack('<ddc1dc1d', time, used, 'i', head * 67108864 + count + 1, 'r', last))
        if redis.call('PTTL', key) < life + 0 then redis.call('PEXPIRE', key, life) end
        return 1
      end
      -- The newest entry says when the list ends: it must be one that counts.
      local size, place = count, index
      if units == give and index == head + count - 1 then
        size, last, newest = 0, 0, 0
        place = index - 1
        while place >= head do
          local before, _, left = struct.unpack('<ddI4', redis.call('GETRANGE', key, base + place * 20, base + place * 20 + 19))
          if left > 0 then
            size, last = place - head + 1, before
            newest = math.min((struct.unpack('<d', text)), before - string.match(theirs, '^.(%d+)'))
            break
          end
          place = place - 1
        end
      end
      redis.call('SETRANGE', key, 0, struct.pack('<ddc1dc1d', newest, used - give, 'i', head * 67108864 + size, 'r', last))
      return give
    end
  end
  return 0
end
local value = redis.call('GET', key)
if not value then return 0 end
--@include extras
local reset = string.match(extras, 'g(........)')
if reset and struct.unpack('<d', reset) >= ARGV[7] + 0 then return 0 end
--@include keep-parked
local chargedAt, asked, rest = ARGV[4] + 0, ARGV[5] + 0, string.sub(value, follows)
local give = 0
if letter == 'b' then
  -- As Bucket.refund: ARGV 6 and 8 are the level and the sum given back when it was charged, 9 "1" for a queue.
  if old ~= name then return 0 end
  local tick, unit, rate = string.match(name, '^b(%d+),(%d+),(%d+)')
  local now, shapes = math.floor(us / tick), ARGV[9] == '1'
  local top, since = ARGV[6] - math.max(0, now - chargedAt) * rate, 0
  if not shapes then since = math.max(0, q - ARGV[8]) end
  local own, wanted = top - since, asked * unit
  local elapsed = now - o
  if elapsed > 0 then l = math.max(0, l - elapsed * rate) end
  if own <= 0 or (shapes and l > own) then return 0 end
  local capacity = string.match(name, '(%d+);$') * unit
  if top > capacity and l > own and l - own + since + wanted > capacity then return 0 end
  give = math.min(wanted, own, l)
  if elapsed > 0 or elapsed < -60000000 / tick then o = now end
  l = l - give
  local sum = q + give
  if sum - q < give then sum = sum * (1 + 2 ^ -52) end
  q = sum
elseif string.match(old, '^(.*),') ~= string.match(name, '^(.*),') then
  return 0
elseif letter == 's' then
  --@include parts-refund
else
  if o ~= chargedAt then return 0 end
  local stop = q
  local now = us
  if letter == 'c' then
    local tick, window = string.match(name, '^c(%d+),(%d+)')
    now = math.floor(us / tick)
    stop = o + window
  elseif letter ~= 'q' then
    stop = o + string.match(name, '^.(%d+)')
  end
  if now >= stop then return 0 end
  give = math.min(asked, l)
  l = l - give
end
-- A key whose end was taken away gets one again.
if keep < 0 then
  keep = life + 0
  if letter == 'q' then keep = math.ceil((q - us) / 1000) + 1000 end
end
if keep > 0 then call('PSETEX', key, string.format('%.0f', keep), struct.pack('<ddc1d', o, l, 'i', q) .. extras .. old .. rest) end
return give
