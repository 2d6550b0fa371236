-- A dead letter keeps its body, its attempts and its last error.
local function bury(id, reason, now)
  leave_queue(id)
  redis.call('RPUSH', DLQ, id)
  redis.call('HSET', DEATHS, id, exact(now) .. ' ' .. reason)
end
