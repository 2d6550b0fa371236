-- The mailbox's own clock in microseconds: the server's, but it never goes back, not even when
-- another server with another clock takes over. ARGV[1] is 0 outside of tests.
local function look_at_clock()
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[1])
  return math.max(now, tonumber(redis.call('HGET', META, 'clock') or 0))
end

-- Numbers of this size would lose digits as Lua writes them.
local function exact(number)
  return string.format('%.0f', number)
end
