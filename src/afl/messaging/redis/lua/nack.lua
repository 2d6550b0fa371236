-- keys: config meta queue high normal low reserved deadlines dlq attempts errors deaths settled
-- uses: clock letters burial settled
-- Answers {retry, microseconds}, dead, again (it was done before), lost or unconfigured. The client
-- gives a random share for the jitter, and the error, if there is one.
local _, token, mark, failure, share, bell, error = unpack(ARGV)
local now = look_at_clock()
local settings = redis.call(
  'HMGET', CONFIG, 'retry_attempts', 'backoff_base', 'backoff_factor', 'backoff_max')
if not settings[1] then return {'unconfigured'} end
local id = held_by(token, now)
if not id then return {redis.call('ZSCORE', SETTLED, mark) and 'again' or 'lost'} end

redis.call('HDEL', RESERVED, token)
redis.call('ZREM', DEADLINES, token)
redis.call('HSET', META, 'clock', exact(now))
mark_settled(mark, now)
if error then redis.call('HSET', ERRORS, id, error) else redis.call('HDEL', ERRORS, id) end

local attempts = tonumber(redis.call('HGET', ATTEMPTS, id) or 1)
if failure == 'permanent' or attempts > tonumber(settings[1]) then
  bury(id, failure == 'permanent' and 'permanent' or 'retries', now)
  return {'dead'}
end
local whole = tonumber(settings[2]) * tonumber(settings[3]) ^ (attempts - 1)
local backoff = math.min(whole, tonumber(settings[4])) * 1000000 * (0.5 + tonumber(share) / 2)
redis.call('ZADD', level_of(id), exact(now + backoff), id)
redis.call('PUBLISH', bell, '')
return {'retry', exact(backoff)}
