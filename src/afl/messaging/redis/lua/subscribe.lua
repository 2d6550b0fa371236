-- keys: subs subscriptions
-- uses: union
local _, subscription, types = unpack(ARGV)
redis.call('HSET', SUBSCRIPTIONS, subscription, types)
unite()
return 1
