-- keys: config meta queue high normal low dlq messages attempts errors deaths
-- uses: clock letters graves
-- Answers {ok, how many of one page}, or unconfigured. A redriven letter has a new serial, since it
-- queues behind the others.
local _, limit, bell, message_id = unpack(ARGV)
local now = look_at_clock()
local queue_size = redis.call('HGET', CONFIG, 'queue_size')
if not queue_size then return {'unconfigured'} end
local room = tonumber(queue_size) - redis.call('LLEN', QUEUE)
local ids = exhume(message_id, math.min(room, tonumber(limit)))
for _, id in ipairs(ids) do
  local serial = redis.call('HINCRBY', META, 'serial', 1)
  local anew = string.format('%016.0f', serial) .. string.match(id, '^%d+(.*)$')
  redis.call('HSET', MESSAGES, anew, redis.call('HGET', MESSAGES, id))
  for _, key in ipairs({MESSAGES, ATTEMPTS, ERRORS, DEATHS}) do redis.call('HDEL', key, id) end
  redis.call('RPUSH', QUEUE, anew)
  redis.call('ZADD', level_of(anew), exact(now), anew)
end
if #ids > 0 then
  redis.call('HSET', META, 'clock', exact(now))
  redis.call('PUBLISH', bell, '')
end
return {'ok', #ids}
