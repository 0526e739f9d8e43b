-- Reads and renews what says that the store is still the same, and counts the instances that use it.
-- KEYS: marker, heartbeats. ARGV: a new marker, the id of this instance, µs after which an instance is gone, the marker
-- that the caller knows ("" for none).
--@include time
-- First what a server without memory refuses: after one write of a script it refuses none.
redis.call('ZADD', KEYS[2], string.format('%.0f', us), ARGV[2])
local markerKey, fresh, known = KEYS[1], ARGV[1], ARGV[4]
--@include marker
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', us - ARGV[3]))
redis.call('PEXPIRE', KEYS[2], 3600000)
return { id, redis.call('ZCARD', KEYS[2]), string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or '', since }
