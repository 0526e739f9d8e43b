-- numbers: limit, µs an admission counts, id of this one. The step is that of Ring.
--
-- A stored list is its numbers (time of the newest admission, units in use, ended entries before the first × 2^26 +
-- entries, after "i"), "r" and the instant at which the last entry ends, the name, then entries of 20 bytes in the order in which
-- they end: instant, id, units. A short list is read and written whole, of a long one only what changes.
local limit, span, permit = ARGV[at + 4] + 0, ARGV[at + 5] + 0, (taker or ARGV[at + 6]) + 0
at = at + 7
local last, head, count = 0, 0, 0
local base = 34 + #name
local text = redis.call('GETRANGE', key, 0, 1023)
local whole = #text < 1024
if text == '' and lost then
  local ends = lost + span
  text = struct.pack('<ddc1dc1d', lost, limit, 'i', 1, 'r', ends) .. name .. struct.pack('<ddI4', ends, 0, limit)
end
if text ~= '' then
  if string.byte(text, 26) == 114 and string.sub(text, 35, base) == name then
    origin, level, head, last = struct.unpack('<ddxdxd', text)
    count = head % 67108864
    head = (head - count) / 67108864
  else
    --@include convert-list
  end
end
if origin - us > 60000000 then
  step = origin - us
  local kept = {}
  if not whole then text = redis.call('GET', key) end
  for index = head, head + count - 1 do
    local ends, id, units = struct.unpack('<ddI4', text, base + index * 20 + 1)
    kept[#kept + 1] = struct.pack('<ddI4', ends - step, id, units)
  end
  origin, last, head, count, whole = us, last - step, 0, #kept, true
  text = string.sub(text, 1, base) .. table.concat(kept)
end
local time = us
if origin > us then time = origin end
local chunk, chunkAt = string.sub(text, base + 1), 0
local first = head
-- What a refusal leaves of a list that came from another rule: all of it.
local heldCount, heldLevel = count, level
local held = moved and step == 0
if count > 0 and last <= time then
  first, level, count = head + count, 0, 0
end
while count > 0 do
  local offset = (first - chunkAt) * 20
  if offset < 0 or offset + 20 > #chunk then
    chunk = redis.call('GETRANGE', key, base + first * 20, base + first * 20 + 1279)
    chunkAt, offset = first, 0
  end
  local ends, _, units = struct.unpack('<ddI4', chunk, offset + 1)
  if ends > time then break end
  level = level - units
  first = first + 1
  count = count - 1
end
if first - head > 64 then moved = true end
if lend then cost = lend(cost, limit - level) end
passes = level + cost <= limit
lead = origin - us
if count == 0 then lead = -us end
wait = 0
if not passes and cost <= limit then
  local over, index = level + cost - limit, first
  local ends = us
  while over > 0 do
    local offset = (index - chunkAt) * 20
    if offset < 0 or offset + 20 > #chunk then
      chunk = redis.call('GETRANGE', key, base + index * 20, base + index * 20 + 1279)
      chunkAt, offset = index, 0
    end
    local _, units
    ends, _, units = struct.unpack('<ddI4', chunk, offset + 1)
    over = over - units
    index = index + 1
  end
  wait = ends - us
end
if charge then
  local ends = time + span
  if count > 0 and last > ends then ends = last end
  longer = (ends - us) / 1000
  -- What is written here has its life with it: that of a block too.
  life = string.format('%.0f', math.max(life, longer + 1000, keep))
  local entry = struct.pack('<ddI4', ends, permit, cost)
  -- Entries given back in the middle take room until they end: with more of them than live ones the list is written anew.
  local sparse = first + count > 2 * level + 64
  if sparse and not whole then
    text = redis.call('GET', key)
    whole = true
  end
  if whole then
    if held then
      local all = string.sub(text, base + 1 + head * 20, base + (head + heldCount) * 20)
      local numbers = struct.pack('<ddc1dc1d', origin, heldLevel, 'i', heldCount, 'r', last)
      heals = { { 'PSETEX', key, life, numbers .. extras .. name .. all } }
    end
    local kept = string.sub(text, base + 1 + first * 20, base + (first + count) * 20)
    if sparse then
      local live = {}
      for from = 1, #kept, 20 do
        if struct.unpack('<I4', kept, from + 16) > 0 then live[#live + 1] = string.sub(kept, from, from + 19) end
      end
      kept, count = table.concat(live), #live
    end
    local rest = extras .. name .. kept
    writes = { { 'PSETEX', key, life, struct.pack('<ddc1dc1d', time, level + cost, 'i', count + 1, 'r', ends) .. rest .. entry } }
    if not held and (moved or step > 0) then
      heals = { { 'PSETEX', key, life, struct.pack('<ddc1dc1d', origin, level, 'i', count, 'r', last) .. rest } }
    end
  else
    writes = {
      { 'SETRANGE', key, 0, struct.pack('<ddc1dc1d', time, level + cost, 'i', first * 67108864 + count + 1, 'r', ends) },
      { 'SETRANGE', key, base + (first + count) * 20, entry },
      { 'PEXPIRE', key, life },
    }
    if moved then
      heals = { { 'SETRANGE', key, 0, struct.pack('<ddc1dc1d', origin, level, 'i', first * 67108864 + count, 'r', last) } }
    end
  end
end
