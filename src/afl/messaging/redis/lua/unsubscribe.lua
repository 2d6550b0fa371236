-- keys: subs subscriptions
-- uses: union
local _, subscription, bell = unpack(ARGV)
local removed = redis.call('HDEL', SUBSCRIPTIONS, subscription)
unite()
redis.call('PUBLISH', bell, '')
return removed
