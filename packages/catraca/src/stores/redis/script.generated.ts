// Made by scripts/redis-script.mjs from the .lua files; do not edit.
const member = `
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
local value, missing = raw, 0
local letter = string.sub(name, 1, 1)
local position, third, ending, parked = 17, 0, 0, {}
while position + 8 < #value do
local mark = string.byte(value, position)
if mark == 120 then
local ends = struct.unpack('<d', value, position + 1)
if ends > us then
blocked = ends - us
extras = extras .. string.sub(value, position, position + 8)
end
position = position + 9
elseif mark == 103 then
extras = extras .. string.sub(value, position, position + 8)
position = position + 9
elseif mark == 105 then
third = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 114 then
ending = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 80 then
local length = struct.unpack('<I4', value, position + 1)
parked[#parked + 1] = string.sub(value, position + 5, position + 4 + length)
position = position + 5 + length
else
break
end
end
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
local function kin(theirs)
local letter = string.sub(theirs, 1, 1)
if letter ~= string.sub(name, 1, 1) then return false end
if letter == 'b' or letter == 'p' then return true end
if letter == 'c' then
local tick, window = string.match(theirs, '^c(%d+),(%d+)')
local myTick, myWindow = string.match(name, '^c(%d+),(%d+)')
return tick * window == myTick * myWindow
end
if letter == 's' then
local tick, part, parts = string.match(theirs, '^s(%d+),(%d+),(%d+)')
local myTick, myPart, myParts = string.match(name, '^s(%d+),(%d+),(%d+)')
return parts == myParts and tick * part == myTick * myPart
end
return string.match(theirs, '^(.*),') == string.match(name, '^(.*),')
end
local function used(o, l, q, rule, rest)
local k = string.sub(rule, 1, 1)
if k == 'b' then
local tick, unit, rate = string.match(rule, '^b(%d+),(%d+),(%d+),')
local elapsed = math.floor(us / tick) - o
if elapsed > 0 then l = math.max(0, l - elapsed * rate) end
local units = math.floor(l / unit)
if units * unit < l then units = units + 1 end
return units
elseif k == 'f' or k == 'F' or k == 'o' then
if us >= o + string.match(rule, '^.(%d+)') then return 0 end
return l
elseif k == 'c' then
local tick, window = string.match(rule, '^c(%d+),(%d+),')
local now = math.floor(us / tick)
window = window + 0
if now >= o + 2 * window then return 0 end
if now >= o + window then return math.ceil(l * (o + 2 * window - now) / window) end
return l + math.ceil(q * (window - math.max(0, now - o)) / window)
elseif k == 's' then
local tick, part, parts = string.match(rule, '^s(%d+),(%d+),(%d+)')
tick, part, parts = tick + 0, part + 0, parts + 0
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
if o - now > 60000000 / tick then
ahead, age = o - now, 0
else
if now < o + part then start = o end
age = math.min(age, (start - o) / part)
end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
return inside + math.ceil(leaving * share / part)
elseif k == 'q' then
if us >= q then return 0 end
return l
end
local units, time = 0, math.max(us, o)
for from = (q - q % 67108864) / 67108864 * 20 + 1, #rest, 20 do
local ends, _, own = struct.unpack('<ddI4', rest, from)
if ends > time then units = units + own end
end
return units
end
local mode = string.sub(op, 2 + member, 2 + member)
if old ~= name then
moved = true
if kin(old) then
if mode == 'r' then
o, l, q, old, parked, value, follows = 0, 0, 0, name, {}, '', 1
end
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
else
if mode ~= 'r' then
missing = used(o, l, q, old, string.sub(value, follows))
if missing > 0 then
local numbers = string.sub(value, 1, 16) .. struct.pack('<c1d', 'i', q)
if ending > 0 then numbers = numbers .. struct.pack('<c1d', 'r', ending) end
table.insert(parked, 1, numbers .. string.sub(value, position))
end
end
o, l, q, old, ending, value, follows = 0, 0, 0, name, 0, '', 1
if mode == 'r' then parked = {} end
local others = 0
for index = 1, #parked do
local other = parked[index]
local start = 26
if string.byte(other, 26) == 114 then start = 35 end
local theirs = string.match(other, '^%a[^;]*;', start)
local a, b, c = struct.unpack('<ddxd', other)
if kin(theirs) then
o, l, q, old, value, follows = a, b, c, theirs, other, start + #theirs
if start == 35 then ending = struct.unpack('<d', other, 27) end
elseif others < 3 and used(a, b, c, theirs, string.sub(other, start + #theirs)) > 0 then
others = others + 1
extras = extras .. struct.pack('<c1I4', 'P', #other) .. other
end
end
end
else
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
end
if letter == 's' then kept = string.sub(value, follows) end
if old ~= name then
local limit, before = string.match(name, '(%d+);$') + 0, string.match(old, '(%d+);$') + 0
local function scaled(count, from, to)
if from == to then return count end
local whole = math.floor(count / from)
local left, quotient, rest = count - whole * from, 0, 0
if left * to <= 9007199254740992 then
quotient = math.floor(left * to / from)
rest = left * to - quotient * from
else
local bit = 4503599627370496
local factor = to
while bit >= 1 do
quotient, rest = quotient * 2, rest * 2
if rest >= from then quotient, rest = quotient + 1, rest - from end
if factor >= bit then
factor, rest = factor - bit, rest + left
if rest >= from then quotient, rest = quotient + 1, rest - from end
end
bit = bit / 2
end
end
if rest > 0 then quotient = quotient + 1 end
local sum = whole * to + quotient
if sum > 9007199254740992 then sum = sum * (1 + 2 ^ -50) end
return sum
end
if letter == 'b' then
local tick, unit, rate = string.match(old, '^b(%d+),(%d+),(%d+)')
local myTick, myUnit = string.match(name, '^b(%d+),(%d+)')
tick, unit, rate, myTick, myUnit = tick + 0, unit + 0, rate + 0, myTick + 0, myUnit + 0
local widest = math.max(tick, myTick)
local seen = math.max(o, math.floor(us / widest) * widest / tick)
if seen > o then l = math.max(0, l - (seen - o) * rate) end
local broken = o - math.floor(us / tick) > 60000000 / tick
o = math.ceil(seen * tick / myTick)
if not broken then o = math.min(o, math.floor(us / myTick) + 60000000 / myTick) end
l = scaled(l, unit, myUnit)
q = scaled(q, unit, myUnit) + limit * myUnit
elseif letter == 'c' or letter == 's' then
o = o * string.match(old, '^%a(%d+)') / string.match(name, '^%a(%d+)')
end
if mode == 'p' then
l = scaled(l, before, limit)
if letter == 'c' then q = scaled(q, before, limit) end
local counts = {}
for from = 1, #kept, 8 do
counts[#counts + 1] = struct.pack('<d', scaled((struct.unpack('<d', kept, from)), before, limit))
end
kept = table.concat(counts)
end
end
origin, level, prior = o, l, q
if letter ~= 'b' then missing = missing - used(o, l, q, name, kept) end
if missing > 0 then
if letter == 'b' then
local tick, unit, rate = string.match(name, '^b(%d+),(%d+),(%d+)')
local now = math.floor(us / tick)
if now > origin or origin - now > 60000000 / tick then
if now > origin then level = math.max(0, level - (now - origin) * rate) end
origin = now
end
local debt = missing * unit
if debt > 9007199254740992 then debt = debt * (1 + 2 ^ -50) end
level = math.max(level, debt)
elseif letter == 's' then
local tick, part, parts = string.match(name, '^s(%d+),(%d+),(%d+)')
tick, part, parts = tick + 0, part + 0, parts + 0
local rest = kept
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
if o - now > 60000000 / tick then
ahead, age = o - now, 0
else
if now < o + part then start = o end
age = math.min(age, (start - o) / part)
end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
if age > parts then
l, rest = 0, ''
elseif age > 0 then
rest = string.sub(string.rep('\\0', 8 * (age - 1)) .. struct.pack('<d', l) .. rest, 1, 8 * parts)
l = 0
end
o = start
origin, level, kept = o, l + missing, rest
else
local start = us
if letter == 'c' then
local tick, window = string.match(name, '^c(%d+),(%d+)')
start = math.floor(math.floor(us / tick) / window) * window
if origin < start then
if origin + window == start then prior = level else prior = 0 end
origin, level = start, 0
end
elseif kind == 'f' then
local window = string.match(name, '^.(%d+)') + 0
local offset = string.match(name, '^o%d+%+(%d+)') or 0
if string.sub(name, 1, 1) ~= 'F' then start = math.floor((us - offset) / window) * window + offset end
if us >= origin + window then origin, level = start, 0 end
elseif us >= prior then
for index = at + 5, at + 7 do
if us >= ARGV[index] + 0 and us < ARGV[index + 1] + 0 then
origin, level, prior = ARGV[index] + 0, 0, ARGV[index + 1] + 0
end
end
end
level = level + missing
end
end
if moved then adopted = struct.pack('<ddc1d', origin, level, 'i', prior) end
end
elseif lost then
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
end
end
if kind == 'b' or kind == 'B' then
local capacity, rate, tick, now, grace = ARGV[at + 4] + 0, 1, 1, us, 60000000
at = at + 5
if kind == 'B' then
rate, tick = ARGV[at] + 0, ARGV[at + 1]
at = at + 2
now = math.floor(us / tick)
grace = grace / tick
end
local elapsed = now - origin
if elapsed > 0 then
local gone = elapsed * rate
if level > gone then level = level - gone else level = 0 end
elseif elapsed < -grace then
step = -elapsed * tick
elseif elapsed < 0 then
lead = -elapsed
long = true
end
origin = now + lead
if lend then cost = lend(cost, capacity - level) end
passes = level + cost <= capacity
if prior > 0 then long = true end
if lead > 0 or level > capacity then longer = (math.max(level, capacity) / rate + lead) * tick / 1000 end
if reserve then
passes = reserve(cost, level + cost, capacity, rate, tick, now, lead)
if passes and level + cost > capacity then longer = ((level + cost) / rate + lead) * tick / 1000 end
end
elseif kind == 'c' or kind == 'C' then
local limit, window, tick, now, grace = ARGV[at + 4] + 0, ARGV[at + 5] + 0, 1, us, 60000000
at = at + 6
if kind == 'C' then
tick = ARGV[at]
at = at + 1
now = math.floor(us / tick)
grace = grace / tick
end
local natural = math.floor(now / window) * window
if now >= origin + window then
if now < origin + 2 * window then prior = level else prior = 0 end
level = 0
origin = natural
elseif origin - now > grace then
step = (origin - now) * tick
origin = natural
end
lead = origin - now
if origin ~= natural then
long = true
longer = (lead + 2 * window) * tick / 1000
end
local share = window
if lead < 0 then share = window + lead end
if lend then cost = lend(cost, limit - level - math.floor(prior * share / window), level + math.ceil(prior * share / window)) end
passes = cost <= limit and prior * share < (limit - level - cost + 1) * window
elseif kind == 's' then
local limit, part, parts, tick = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0, ARGV[at + 7] + 0
at = at + 8
local o, l, rest = origin, level, kept
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
if o - now > 60000000 / tick then
ahead, age = o - now, 0
else
if now < o + part then start = o end
age = math.min(age, (start - o) / part)
end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
lead = -now
if l > 0 then lead = o - now end
if ahead > 0 then
step = ahead * tick
lead = start - now
elseif start > now then
longer = (start - now + (parts + 1) * part) * tick / 1000
end
use = inside + math.floor(leaving * share / part)
if lend then cost = lend(cost, limit - use, inside + math.ceil(leaving * share / part)) end
passes = cost <= limit and leaving * share < (limit - inside - cost + 1) * part
wait = 0
if not passes and cost <= limit then
local gone = age
while inside + cost > limit do
inside = inside - (counts[parts - gone] or 0)
gone = gone + 1
end
local last, elapsed = counts[parts - gone + 1] or 0, 0
if last > 0 then elapsed = math.max(0, part - math.ceil((limit - inside - cost + 1) * part / last) + 1) end
wait = (start + (gone - age) * part + elapsed) * tick - us
end
if charge then
if age > parts then
l, rest = 0, ''
elseif age > 0 then
rest = string.sub(string.rep('\\0', 8 * (age - 1)) .. struct.pack('<d', l) .. rest, 1, 8 * parts)
l = 0
end
o = start
origin, level, tail = o, l, rest
end
elseif kind == 'f' then
local limit, window, offset = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
local first = offset < 0
at = at + 7
local natural = us
if not first then natural = math.floor((us - offset) / window) * window + offset end
if us >= origin + window then
level = 0
origin = natural
elseif origin - us > 60000000 then
step = origin - us
origin = natural
elseif offset ~= 0 and level == 0 then
origin = natural
end
lead = origin - us
if origin ~= natural then
long = true
longer = (lead + window) / 1000
end
if lend then cost = lend(cost, limit - level) end
passes = level + cost <= limit
elseif kind == 'q' then
local limit, start, stop = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
if us >= stop then
start, stop = stop, ARGV[at + 7] + 0
if us >= stop then
start, stop = stop, ARGV[at + 8] + 0
end
end
if us < start or us >= stop then return { us } end
at = at + 9
if origin < start then
level = 0
elseif origin - us > 60000000 then
step = origin - us
elseif origin > us then
start, stop = origin, prior
long = true
end
origin = start
prior = stop
lead = start - us
longer = (stop - us) / 1000
if lend then cost = lend(cost, limit - level) end
passes = level + cost <= limit
else
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
local value, missing = redis.call('GET', key), 0
local position, third, ending, parked = 17, 0, 0, {}
while position + 8 < #value do
local mark = string.byte(value, position)
if mark == 120 then
local ends = struct.unpack('<d', value, position + 1)
if ends > us then
blocked = ends - us
extras = extras .. string.sub(value, position, position + 8)
end
position = position + 9
elseif mark == 103 then
extras = extras .. string.sub(value, position, position + 8)
position = position + 9
elseif mark == 105 then
third = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 114 then
ending = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 80 then
local length = struct.unpack('<I4', value, position + 1)
parked[#parked + 1] = string.sub(value, position + 5, position + 4 + length)
position = position + 5 + length
else
break
end
end
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
local function kin(theirs)
local letter = string.sub(theirs, 1, 1)
if letter ~= string.sub(name, 1, 1) then return false end
if letter == 'b' or letter == 'p' then return true end
if letter == 'c' then
local tick, window = string.match(theirs, '^c(%d+),(%d+)')
local myTick, myWindow = string.match(name, '^c(%d+),(%d+)')
return tick * window == myTick * myWindow
end
if letter == 's' then
local tick, part, parts = string.match(theirs, '^s(%d+),(%d+),(%d+)')
local myTick, myPart, myParts = string.match(name, '^s(%d+),(%d+),(%d+)')
return parts == myParts and tick * part == myTick * myPart
end
return string.match(theirs, '^(.*),') == string.match(name, '^(.*),')
end
local function used(o, l, q, rule, rest)
local k = string.sub(rule, 1, 1)
if k == 'b' then
local tick, unit, rate = string.match(rule, '^b(%d+),(%d+),(%d+),')
local elapsed = math.floor(us / tick) - o
if elapsed > 0 then l = math.max(0, l - elapsed * rate) end
local units = math.floor(l / unit)
if units * unit < l then units = units + 1 end
return units
elseif k == 'f' or k == 'F' or k == 'o' then
if us >= o + string.match(rule, '^.(%d+)') then return 0 end
return l
elseif k == 'c' then
local tick, window = string.match(rule, '^c(%d+),(%d+),')
local now = math.floor(us / tick)
window = window + 0
if now >= o + 2 * window then return 0 end
if now >= o + window then return math.ceil(l * (o + 2 * window - now) / window) end
return l + math.ceil(q * (window - math.max(0, now - o)) / window)
elseif k == 's' then
local tick, part, parts = string.match(rule, '^s(%d+),(%d+),(%d+)')
tick, part, parts = tick + 0, part + 0, parts + 0
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
if o - now > 60000000 / tick then
ahead, age = o - now, 0
else
if now < o + part then start = o end
age = math.min(age, (start - o) / part)
end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
return inside + math.ceil(leaving * share / part)
elseif k == 'q' then
if us >= q then return 0 end
return l
end
local units, time = 0, math.max(us, o)
for from = (q - q % 67108864) / 67108864 * 20 + 1, #rest, 20 do
local ends, _, own = struct.unpack('<ddI4', rest, from)
if ends > time then units = units + own end
end
return units
end
local mode = string.sub(op, 2 + member, 2 + member)
moved, whole = true, true
if old == name or (kin(old) and mode ~= 'r') then
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
elseif kin(old) then
o, l, q, ending, value, follows = 0, 0, 0, 0, '', 1
else
if mode ~= 'r' then
missing = used(o, l, q, old, string.sub(value, follows))
if missing > 0 then
local numbers = string.sub(value, 1, 16) .. struct.pack('<c1d', 'i', q)
if ending > 0 then numbers = numbers .. struct.pack('<c1d', 'r', ending) end
table.insert(parked, 1, numbers .. string.sub(value, position))
end
end
o, l, q, old, ending, value, follows = 0, 0, 0, name, 0, '', 1
if mode == 'r' then parked = {} end
local others = 0
for index = 1, #parked do
local other = parked[index]
local start = 26
if string.byte(other, 26) == 114 then start = 35 end
local theirs = string.match(other, '^%a[^;]*;', start)
local a, b, c = struct.unpack('<ddxd', other)
if kin(theirs) then
o, l, q, old, value, follows = a, b, c, theirs, other, start + #theirs
if start == 35 then ending = struct.unpack('<d', other, 27) end
elseif others < 3 and used(a, b, c, theirs, string.sub(other, start + #theirs)) > 0 then
others = others + 1
extras = extras .. struct.pack('<c1I4', 'P', #other) .. other
end
end
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
life = string.format('%.0f', math.max(life, longer + 1000, keep))
local entry = struct.pack('<ddI4', ends, permit, cost)
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
if keep > 0 and keep > life + 0 then life = string.format('%.0f', keep) end`.slice(1)
const whole = (frame: string): string => frame.slice(1).replaceAll('@member@', () => member)
export const decide = { sha: 'dc7e07b4aaa31060d73d1583735103c2b45813d8', text: whole(`
local op, at, charge = ARGV[1], 1, true
if #op > 1 then
at = 2
charge = string.byte(op) == 116
end
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
if #KEYS == 1 then
local key, member = KEYS[1], 1
local raw
@member@
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
level = use or level
if not passes then level = -1 - level end
prior = wait or prior
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if wait then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }
end
local members, firstKey = #KEYS, 0
local read
if string.byte(op, 2) == 46 then read = call('MGET', unpack(KEYS)) end
local values, lives, rings, healed, reply = {}, {}, {}, {}, { us }
local all, mask, bit = true, 0, 1
for member = 1, members do
local key = KEYS[firstKey + member]
local raw
if read then raw = read[member] end
@member@
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
return reply`) }
export const batch = { sha: '84780480037a16c504543dc4e1f8034fe553f9e2', text: whole(`
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
local function one(key, at, op, charge)
local raw
local member = 1
@member@
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
level = use or level
if not passes then level = -1 - level end
prior = wait or prior
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if wait then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }
end
local function many(firstKey, members, at, op, charge)
local read
local values, lives, rings, healed, reply = {}, {}, {}, {}, { us }
local all, mask, bit = true, 0, 1
for member = 1, members do
local key = KEYS[firstKey + member]
local raw
if read then raw = read[member] end
@member@
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
end
local answers, at, firstKey = {}, 2, 0
for index = 1, ARGV[1] + 0 do
local members, length = ARGV[at] + 0, ARGV[at + 1] + 0
local op, from, charge = ARGV[at + 2], at + 2, true
if #op > 1 then
from = at + 3
charge = string.byte(op) == 116
end
local well, answer
if members == 1 then
well, answer = pcall(one, KEYS[firstKey + 1], from, op, charge)
else
well, answer = pcall(many, firstKey, members, from, op, charge)
end
if not well then
if type(answer) == 'table' then answer = answer.err end
answer = { tostring(answer) }
elseif answer.err then
answer = { answer.err }
end
answers[index] = answer
firstKey = firstKey + members
at = at + 2 + length
end
return answers`) }
export const amend = { sha: 'ed6469d375fd003c1a40172c5dd052c599ca68e7', text: whole(`
local key, op = KEYS[1], ARGV[1]
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
if string.byte(op) == 99 or string.byte(op) == 115 then
local at, member, charge = 2, 1, true
local raw
local asked, unit = ARGV[3], 1
local limitOf = string.match(asked, '(%d+);$') + 0
if string.byte(asked) == 98 then unit = string.match(asked, '^b%d+,(%d+)') + 0 end
if string.byte(op) == 115 then
lend = function(wanted, room, counted)
if counted then room = limitOf - counted end
return math.max(0, math.min(wanted, math.floor((room + limitOf * unit) / unit) * unit))
end
end
@member@
if lend and cost == 0 then return 0 end
if kind == 'b' or kind == 'B' then
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
local position, third, ending, parked = 17, 0, 0, {}
while position + 8 < #value do
local mark = string.byte(value, position)
if mark == 120 then
local ends = struct.unpack('<d', value, position + 1)
if ends > us then
blocked = ends - us
extras = extras .. string.sub(value, position, position + 8)
end
position = position + 9
elseif mark == 103 then
extras = extras .. string.sub(value, position, position + 8)
position = position + 9
elseif mark == 105 then
third = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 114 then
ending = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 80 then
local length = struct.unpack('<I4', value, position + 1)
parked[#parked + 1] = string.sub(value, position + 5, position + 4 + length)
position = position + 5 + length
else
break
end
end
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
if op == 'b' then
numbers, rest = string.sub(value, 1, 16) .. struct.pack('<c1d', 'i', q), string.sub(value, follows - #old)
if ending > 0 then numbers = numbers .. struct.pack('<c1d', 'r', ending) end
if blocked > 0 then
local from = string.find(extras, struct.pack('<c1d', 'x', us + blocked), 1, true)
extras = string.sub(extras, 1, from - 1) .. string.sub(extras, from + 9)
end
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
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
if list then
local text = redis.call('GETRANGE', key, 0, 1023)
if text == '' then return 0 end
local theirs = string.byte(text, 26) == 114 and string.match(text, '^[lp]%d+,%d+;', 35)
local base = 34
if theirs then
base = base + #theirs
else
local value = redis.call('GET', key)
local position, third, ending, parked = 17, 0, 0, {}
while position + 8 < #value do
local mark = string.byte(value, position)
if mark == 120 then
local ends = struct.unpack('<d', value, position + 1)
if ends > us then
blocked = ends - us
extras = extras .. string.sub(value, position, position + 8)
end
position = position + 9
elseif mark == 103 then
extras = extras .. string.sub(value, position, position + 8)
position = position + 9
elseif mark == 105 then
third = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 114 then
ending = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 80 then
local length = struct.unpack('<I4', value, position + 1)
parked[#parked + 1] = string.sub(value, position + 5, position + 4 + length)
position = position + 5 + length
else
break
end
end
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
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
local position, third, ending, parked = 17, 0, 0, {}
while position + 8 < #value do
local mark = string.byte(value, position)
if mark == 120 then
local ends = struct.unpack('<d', value, position + 1)
if ends > us then
blocked = ends - us
extras = extras .. string.sub(value, position, position + 8)
end
position = position + 9
elseif mark == 103 then
extras = extras .. string.sub(value, position, position + 8)
position = position + 9
elseif mark == 105 then
third = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 114 then
ending = struct.unpack('<d', value, position + 1)
position = position + 9
elseif mark == 80 then
local length = struct.unpack('<I4', value, position + 1)
parked[#parked + 1] = string.sub(value, position + 5, position + 4 + length)
position = position + 5 + length
else
break
end
end
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
local reset = string.match(extras, 'g(........)')
if reset and struct.unpack('<d', reset) >= ARGV[7] + 0 then return 0 end
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
local chargedAt, asked, rest = ARGV[4] + 0, ARGV[5] + 0, string.sub(value, follows)
local give = 0
if letter == 'b' then
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
local tick, part, parts = string.match(name, '^s(%d+),(%d+),(%d+)')
tick, part, parts = tick + 0, part + 0, parts + 0
local now = math.floor(us / tick)
local start, age, ahead = math.floor(now / part) * part, parts + 1, 0
if l > 0 then
if o - now > 60000000 / tick then
ahead, age = o - now, 0
else
if now < o + part then start = o end
age = math.min(age, (start - o) / part)
end
end
local counts = { l, struct.unpack('<' .. string.rep('d', #rest / 8), rest) }
counts[#rest / 8 + 2] = nil
local inside, leaving = 0, counts[parts - age + 1] or 0
for index = 1, parts - age do inside = inside + (counts[index] or 0) end
local share = part - math.max(0, now - start)
local index = (o - chargedAt) / part
if index % 1 ~= 0 or index < 0 or index + age >= parts then return 0 end
index = index + 1
give = math.min(asked, counts[index] or 0)
if give == 0 then return 0 end
counts[index] = counts[index] - give
while #counts > 1 and counts[1] == 0 do
table.remove(counts, 1)
o = o - part
end
l = counts[1]
rest = struct.pack('<' .. string.rep('d', #counts - 1), unpack(counts, 2))
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
if keep < 0 then
keep = life + 0
if letter == 'q' then keep = math.ceil((q - us) / 1000) + 1000 end
end
if keep > 0 then call('PSETEX', key, string.format('%.0f', keep), struct.pack('<ddc1d', o, l, 'i', q) .. extras .. old .. rest) end
return give`) }
export const grant = { sha: '6df6410378d192723b31bb7bc30e394bcf559955', text: whole(`
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
local lostUs, changed = ARGV[3] + 0, 0
if ARGV[1] ~= '' then
local markerKey, fresh, known = KEYS[#KEYS], ARGV[1], ARGV[2]
local value = call('GET', markerKey)
local id, since = '', 0
if value then id, since = string.match(value, '^(%w+):?(%d*)') end
if since == '' then since = 0 end
since = since + 0
if not value or (known ~= '' and id ~= known and since == 0) then
value = id
if id == '' then value = fresh end
if known ~= '' then
since = us
value = value .. ':' .. string.format('%.0f', us)
end
redis.call('SET', markerKey, value, 'PX', 3600000)
else
redis.call('PEXPIRE', markerKey, 3600000)
end
lostUs = math.max(lostUs, since)
if known ~= '' and id ~= known then changed = 1 end
end
local least, unit, full
lend = function(wanted, room)
if wanted <= room then return wanted end
return math.max(least, math.floor(room / unit) * unit)
end
local function one(key, at, op, charge)
local raw
local member = 1
@member@
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
level = use or level
if not passes then level = -1 - level end
prior = wait or prior
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if wait then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }
end
local answers, from, index = {}, 5, 0
for _ = 1, ARGV[4] + 0 do
lost = nil
if ARGV[from + 1] == '1' and lostUs > 0 and us < lostUs + ARGV[from] then lost = lostUs end
unit, full = ARGV[from + 2] + 0, ARGV[from + 3] + 0
local policy = from + 7
local at = from + 6 + ARGV[from + 5]
local stop = at + 3 * ARGV[from + 4]
while at < stop do
index = index + 1
least, most, taker = ARGV[at] * unit, ARGV[at + 1] * unit, ARGV[at + 2]
local well, answer = pcall(one, KEYS[index], policy, ARGV[policy - 1], true)
if not well then
if type(answer) == 'table' then answer = answer.err end
answer = { tostring(answer) }
elseif answer.err then
answer = { answer.err }
else
answer[#answer + 1] = granted
end
answers[index] = answer
at = at + 3
end
from = stop
end
answers[index + 1] = lostUs
answers[index + 2] = changed
return answers`) }
export const pulse = { sha: '42cd44545c675ca6586592da5db995dcfcba00bf', text: whole(`
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
redis.call('ZADD', KEYS[2], string.format('%.0f', us), ARGV[2])
local markerKey, fresh, known = KEYS[1], ARGV[1], ARGV[4]
local value = call('GET', markerKey)
local id, since = '', 0
if value then id, since = string.match(value, '^(%w+):?(%d*)') end
if since == '' then since = 0 end
since = since + 0
if not value or (known ~= '' and id ~= known and since == 0) then
value = id
if id == '' then value = fresh end
if known ~= '' then
since = us
value = value .. ':' .. string.format('%.0f', us)
end
redis.call('SET', markerKey, value, 'PX', 3600000)
else
redis.call('PEXPIRE', markerKey, 3600000)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', us - ARGV[3]))
redis.call('PEXPIRE', KEYS[2], 3600000)
return { id, redis.call('ZCARD', KEYS[2]), string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or '', since }`) }
export const reserve = { sha: '9efaa82416235f3057578e44b3358617337f3413', text: whole(`
local op, at, charge = ARGV[3], 4, true
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
local soon, shapes = ARGV[1] + 0, ARGV[2] == '1'
local function ceiling(levels, rate)
local quotient = math.floor(levels / rate)
if quotient * rate < levels then return quotient + 1 end
if (quotient - 1) * rate >= levels then return quotient - 1 end
return quotient
end
reserve = function(cost, after, capacity, rate, tick, now, lead)
local over = after - capacity
if cost > capacity or after > 9007199254740992 or (shapes and over > 0) then return false end
if shapes then over = after end
if over <= 0 then return true end
return (now + ceiling(over, rate) + lead) * tick - us <= soon
end
local key, member = KEYS[1], 1
local raw
@member@
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
level = use or level
if not passes then level = -1 - level end
prior = wait or prior
if long then return { -us, level, lead, prior, blocked, step, 1 } end
if wait then return { us, level, lead, wait } end
if kind == 'c' or kind == 'C' then return { us, level, prior } end
return { us, level }`) }
export const upTo = { sha: '62c1ec012837fe92dd18fc6f7b915f80a3f3f98e', text: whole(`
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
local members = #KEYS
local from = 2 + members
local function several(charge)
local firstKey, op, at = 0, ARGV[from], from + 1
local read
local values, lives, rings, healed, reply = {}, {}, {}, {}, { us }
local all, mask, bit = true, 0, 1
for member = 1, members do
local key = KEYS[firstKey + member]
local raw
if read then raw = read[member] end
@member@
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
end
local units, place = ARGV[1] + 0, 0
lend = function(_, room)
place = place + 1
units = math.min(units, math.floor(room / ARGV[1 + place]))
return ARGV[1 + place] + 0
end
local answer = several(false)
if answer.err or #answer == 1 then return answer end
if not passed then units = 1 end
place = 0
lend = function()
place = place + 1
return units * ARGV[1 + place]
end
answer = several(true)
if answer.err then return answer end
answer[#answer + 1] = units
return answer`) }
