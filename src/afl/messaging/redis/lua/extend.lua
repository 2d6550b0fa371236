-- keys: meta deadlines
-- uses: clock
-- Answers 1, or 0 if the token has lost its message.
local _, token, visibility = unpack(ARGV)
local now = look_at_clock()
local deadline = redis.call('ZSCORE', DEADLINES, token)
if not deadline or tonumber(deadline) <= now then return 0 end
redis.call('HSET', META, 'clock', exact(now))
redis.call('ZADD', DEADLINES, exact(now + tonumber(visibility)), token)
return 1
