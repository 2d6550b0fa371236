-- One agent: its key, and that of its capabilities. The agent's JSON is written by the client; what
-- only the server knows stands before it, so nothing is ever encoded anew:
--   {"died":false,"last_heartbeat":SECONDS, ...
local AGENT, CAPABILITIES = KEYS[1], KEYS[2]
local verb, owner, grace, lifetime, rest, capabilities, events =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
local time = redis.call('TIME')
local now = string.format('%d.%03d', time[1], math.floor(time[2] / 1000))
local old = redis.call('GET', AGENT)
local known, was = pcall(cjson.decode, old or '')
if not known then was = nil end

local function publish(event, agent)
  if events == '' then return end
  local text = cjson.encode({
    event = event, at = tonumber(now), name = agent.name, agent_id = agent.agent_id,
    status = agent.status})
  redis.call('PUBLISH', events .. ':all', text)
  redis.call('PUBLISH', events .. ':' .. event, text)
end

-- The keys outlive the agent by the grace.
local alive = was and redis.call('PTTL', AGENT) > (was.grace_ms or grace)

if verb == 'register' then
  if alive and was.owner ~= owner then return 'owned' end
  redis.call('SET', AGENT, '{"died":false,"last_heartbeat":' .. now .. ',' .. rest, 'PX', lifetime)
  if capabilities == '' then
    redis.call('DEL', CAPABILITIES)
  else
    redis.call('SET', CAPABILITIES, capabilities, 'PX', lifetime)
  end
  local new = cjson.decode('{' .. rest)
  if not alive or was.owner ~= owner then
    publish('registered', new)
  elseif was.status ~= new.status then
    publish('status_changed', new)
  end
  return 'ok'
elseif verb == 'deregister' then
  if was and was.owner ~= owner then return 'owned' end
  if redis.call('DEL', AGENT, CAPABILITIES) > 0 and was then publish('deregistered', was) end
  return 'ok'
elseif verb == 'bury' then
  -- told once, by whoever sees it first
  local head = '{"died":false,'
  if was and not alive and string.sub(old, 1, #head) == head then
    redis.call('SET', AGENT, '{"died":true,' .. string.sub(old, #head + 1), 'KEEPTTL')
    publish('died', was)
  end
  return 'ok'
end
