-- A page of dead letters: the oldest, or the one with this message id. They are off the list.
local function exhume(message_id, limit)
  if limit < 1 then return {} end
  if not message_id then
    local oldest = redis.call('LRANGE', DLQ, 0, limit - 1)
    redis.call('LTRIM', DLQ, #oldest, -1)
    return oldest
  end
  local offset = 0
  repeat
    local page = redis.call('LRANGE', DLQ, offset, offset + 499)
    for _, id in ipairs(page) do
      if string.match(id, '^%d+:%d:%a+:(.*)$') == message_id then
        redis.call('LREM', DLQ, 1, id)
        return {id}
      end
    end
    offset = offset + 500
  until #page < 500
  return {}
end
