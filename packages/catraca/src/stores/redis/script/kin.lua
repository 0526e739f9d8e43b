-- Rules whose states mean the same, or convert without loss.
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
