-- keys: meta high normal low reserved dlq
-- uses: clock
-- Answers sent, ready, delayed, reserved, acked, dead and purged.
local stamp = exact(look_at_clock())
local ready, waiting = 0, 0
for _, level in ipairs({HIGH, NORMAL, LOW}) do
  ready = ready + redis.call('ZCOUNT', level, '-inf', stamp)
  waiting = waiting + redis.call('ZCARD', level)
end
local counted = redis.call('HMGET', META, 'sent', 'acked', 'purged')
return {
  tonumber(counted[1] or 0),
  ready,
  waiting - ready,
  redis.call('HLEN', RESERVED),
  tonumber(counted[2] or 0),
  redis.call('LLEN', DLQ),
  tonumber(counted[3] or 0),
}
