-- keys: config meta queue high normal low reserved deadlines dlq attempts errors deaths expiries
-- uses: clock letters burial overdue
-- Answers {ok, recovered, buried} of one page, or unconfigured.
local now = look_at_clock()
local retry_attempts = redis.call('HGET', CONFIG, 'retry_attempts')
if not retry_attempts then return {'unconfigured'} end
redis.call('HSET', META, 'clock', exact(now))
local recovered, buried = put_right(tonumber(retry_attempts), now)
if recovered > buried then redis.call('PUBLISH', ARGV[2], '') end
return {'ok', recovered, buried}
