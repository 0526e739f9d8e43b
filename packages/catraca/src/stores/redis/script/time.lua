local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
