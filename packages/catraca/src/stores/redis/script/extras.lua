-- Reads a state that is not just two numbers and the name asked for. Between them may stand "i" and the third number, "r"
-- and the end of the last entry of a list, "x" and the end of a block, "g" and the instant of a reset, "P" and a state under a rule that counts
-- otherwise. Sets o, l, q to the numbers, `old` to the name, `follows` to the place after it.
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
-- Anything but a name of ours says that another program wrote this.
local old = string.match(value, '^[flpF]%d+,%d+;', position) or string.match(value, '^b%d+,%d+,%d+,%d+;', position)
  or string.match(value, '^o%d+%+%d+,%d+;', position) or string.match(value, '^c%d+,%d+,%d+;', position)
  or string.match(value, '^s%d+,%d+,%d+,%d+;', position) or string.match(value, '^q%a+/[^;%z]*,%d+;', position)
if not old then return redis.error_reply('CATRACA a key holds something that is not a state') end
local follows = position + #old
local o, l = struct.unpack('<dd', value)
local q = third
keep = redis.call('PTTL', key)
