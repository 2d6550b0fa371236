-- What time has done since somebody looked, a page of each kind: reservations that ran out are ready
-- again in their old place, or dead; letters that nobody received in time are dead.
local PAGE = 200

local function release(token, retry_attempts, now)
  local score, id = string.match(redis.call('HGET', RESERVED, token) or '', '^(%S+) (.*)$')
  redis.call('HDEL', RESERVED, token)
  redis.call('ZREM', DEADLINES, token)
  if not id then return false end
  redis.call('HSET', ERRORS, id, 'visibility timeout')
  if tonumber(redis.call('HGET', ATTEMPTS, id) or 0) > retry_attempts then
    bury(id, 'retries', now)
    return true
  end
  redis.call('ZADD', level_of(id), score, id)
  return false
end

local function put_right(retry_attempts, now)
  local buried = 0
  local held = redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', exact(now), 'LIMIT', 0, PAGE)
  for _, token in ipairs(held) do
    if release(token, retry_attempts, now) then buried = buried + 1 end
  end
  local expired = redis.call('ZRANGEBYSCORE', EXPIRIES, '-inf', exact(now), 'LIMIT', 0, PAGE)
  for _, id in ipairs(expired) do
    redis.call('ZREM', EXPIRIES, id)
    redis.call('ZREM', level_of(id), id)
    bury(id, 'expired', now)
  end
  return #held, buried + #expired
end
