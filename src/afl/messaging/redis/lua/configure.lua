-- keys: config
-- ARGV: how many names and values change, those, and then the names and values of all defaults.
-- Answers all names and values as they are now.
local changes = tonumber(ARGV[2])
for place = 3 + changes, #ARGV, 2 do redis.call('HSETNX', CONFIG, ARGV[place], ARGV[place + 1]) end
for place = 3, 2 + changes, 2 do redis.call('HSET', CONFIG, ARGV[place], ARGV[place + 1]) end
if changes > 0 then redis.call('HINCRBY', CONFIG, 'version', 1) end
return redis.call('HGETALL', CONFIG)
