-- Whose answer was lost asks again with the same mark, and must hear the same. Marks are kept long
-- enough for any client that repeats.
local MARK_US = 30 * 1000000

local function mark_settled(mark, now)
  redis.call('ZREMRANGEBYSCORE', SETTLED, '-inf', exact(now))
  redis.call('ZADD', SETTLED, exact(now + MARK_US), mark)
end

-- The id of what the token holds, if its deadline is not over.
local function held_by(token, now)
  local deadline = redis.call('ZSCORE', DEADLINES, token)
  if not deadline or tonumber(deadline) <= now then return nil end
  return string.match(redis.call('HGET', RESERVED, token), '^%S+ (.*)$')
end
