local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local lend, lost, granted, most, taker, reserve, passed
