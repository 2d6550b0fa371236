-- keys: config meta queue high normal low dedup messages expiries
-- uses: clock
-- Answers sent, known (sent before), full or unconfigured.
local _, message_id, type, priority, delay, ttl, bell, body = unpack(ARGV)
local now = look_at_clock()

local forgotten_at = redis.call('ZSCORE', DEDUP, message_id)
if forgotten_at and tonumber(forgotten_at) > now then return {'known'} end

local settings = redis.call('HMGET', CONFIG, 'queue_size', 'dedupe_seconds')
if not settings[1] then return {'unconfigured'} end
if redis.call('LLEN', QUEUE) >= tonumber(settings[1]) then return {'full'} end

local serial = redis.call('HINCRBY', META, 'serial', 1)
local id = string.format('%016.0f:%s:%s:%s', serial, priority, type, message_id)
redis.call('HSET', META, 'clock', exact(now))
redis.call('HINCRBY', META, 'sent', 1)
redis.call('ZREMRANGEBYSCORE', DEDUP, '-inf', exact(now))
redis.call('ZADD', DEDUP, exact(now + tonumber(settings[2]) * 1000000), message_id)
redis.call('HSET', MESSAGES, id, exact(now) .. ' ' .. body)
redis.call('RPUSH', QUEUE, id)
local level = priority == '9' and HIGH or priority == '5' and NORMAL or LOW
redis.call('ZADD', level, exact(now + tonumber(delay)), id)
if ttl ~= '' then redis.call('ZADD', EXPIRIES, exact(now + tonumber(ttl)), id) end
redis.call('PUBLISH', bell, '')
return {'sent'}
