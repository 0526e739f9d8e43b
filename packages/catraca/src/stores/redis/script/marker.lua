-- Reads and renews the marker, which says that the memory is still the same: an id, and after ":" the instant at which
-- somebody who knew another one found this one. Uses markerKey, fresh, known; sets id, "" for none, and since, 0 for never.
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
