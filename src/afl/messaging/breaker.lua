-- The rules of `breaker`, with the server's clock. See there.
local STATE, METRICS = KEYS[1], KEYS[2]
local verb, permit, epoch, good, slow, offset = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1',
  ARGV[5] == '1', tonumber(ARGV[6])
local c = cjson.decode(ARGV[7])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + offset
local text = redis.call('GET', STATE)
local b = text and cjson.decode(text)
  or {state = 'closed', epoch = 0, since = now, failures = {}, successes = 0, permits = {}}
local changed = false

local function turn(state)
  b = {state = state, epoch = b.epoch + 1, since = now, failures = {}, successes = 0, permits = {}}
  changed = true
end

local function count(what)
  redis.call('HINCRBY', METRICS, what, 1)
end

local function finish(...)
  if changed then redis.call('SET', STATE, cjson.encode(b), 'EX', 86400) end
  redis.call('EXPIRE', METRICS, 604800)
  return {...}
end

if b.state == 'open' and now >= b.since + c.timeout then
  turn('half_open')
end
local held, soonest = 0, nil
for id, ends in pairs(b.permits) do
  if ends <= now then
    b.permits[id] = nil
    changed = true
  else
    held = held + 1
    soonest = math.min(soonest or ends, ends)
  end
end

if verb == 'admit' then
  local left = 0
  if b.state == 'open' then
    left = b.since + c.timeout - now
  elseif b.state == 'half_open' and not b.permits[permit] then
    if held + b.successes >= c.probes then
      left = (soonest or now + 1) - now
    else
      b.permits[permit] = now + c.lease
      changed = true
    end
  end
  count(left > 0 and 'refused' or 'admitted')
  return finish(left > 0 and 0 or 1, b.state, b.epoch, left)
end

if verb == 'release' then
  count('given_up')
  if b.permits[permit] then
    b.permits[permit] = nil
    changed = true
  end
elseif verb == 'reset' then
  turn('closed')
elseif verb == 'settle' then
  count(good and 'good' or 'bad')
  if slow then count('slow') end
  if b.epoch == epoch and b.state == 'closed' then
    if good then
      changed = changed or #b.failures > 0
      b.failures = {}
    else
      local recent = {}
      for _, at in ipairs(b.failures) do
        if at > now - c.window then recent[#recent + 1] = at end
      end
      recent[#recent + 1] = now
      b.failures = recent
      changed = true
      if #recent >= c.threshold then
        turn('open')
        count('opened')
      end
    end
  elseif b.epoch == epoch and b.state == 'half_open' and b.permits[permit] then
    b.permits[permit] = nil
    changed = true
    if not good then
      turn('open')
      count('opened')
    else
      b.successes = b.successes + 1
      if b.successes >= c.successes then turn('closed') end
    end
  end
end
return finish(b.state, b.epoch)
