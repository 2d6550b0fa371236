-- keys: config
-- ARGV: a version, and the names and values of settings, which replace those of an older version.
local version = redis.call('HGET', CONFIG, 'version')
if version and tonumber(version) >= tonumber(ARGV[2]) then return 0 end
for place = 3, #ARGV, 2 do redis.call('HSET', CONFIG, ARGV[place], ARGV[place + 1]) end
return 1
