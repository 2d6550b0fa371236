-- A letter's id is <serial>:<priority>:<type>:<message id>, so that ids sort in the order of sending
-- and tell what must be known of a letter without its body.
local SCHED = {['9'] = HIGH, ['5'] = NORMAL, ['1'] = LOW}

local function level_of(id)
  return SCHED[string.match(id, '^%d+:(%d):')]
end

local function serial_of(id)
  return tonumber(string.match(id, '^%d+'))
end

-- Nearly always one of the ends of a long queue is much nearer than the other.
local function leave_queue(id)
  local from = 1
  if redis.call('LLEN', QUEUE) > 64 then
    local first = serial_of(redis.call('LINDEX', QUEUE, 0))
    local last = serial_of(redis.call('LINDEX', QUEUE, -1))
    if last - serial_of(id) < serial_of(id) - first then from = -1 end
  end
  redis.call('LREM', QUEUE, from, id)
end
