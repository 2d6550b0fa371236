-- keys: meta queue high normal low reserved deadlines messages attempts errors settled
-- uses: clock letters settled
-- Answers 1, or 0 if the token has lost its message.
local _, token, mark = unpack(ARGV)
local now = look_at_clock()
local id = held_by(token, now)
if not id then return redis.call('ZSCORE', SETTLED, mark) and 1 or 0 end
redis.call('HDEL', RESERVED, token)
redis.call('ZREM', DEADLINES, token)
redis.call('HDEL', MESSAGES, id)
redis.call('HDEL', ATTEMPTS, id)
redis.call('HDEL', ERRORS, id)
leave_queue(id)
redis.call('HINCRBY', META, 'acked', 1)
mark_settled(mark, now)
return 1
