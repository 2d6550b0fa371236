-- keys: meta high normal low messages subs
-- uses: clock wanted
-- Answers the messages that are received next, most urgent first.
local limit = tonumber(ARGV[2])
local stamp = exact(look_at_clock())
local wanted = wanted_types()
local answer = {}
for _, level in ipairs({HIGH, NORMAL, LOW}) do
  local offset = 0
  repeat
    local page = redis.call('ZRANGEBYSCORE', level, '-inf', stamp, 'LIMIT', offset, 100)
    for _, id in ipairs(page) do
      if #answer == limit then return answer end
      if is_wanted(id, wanted) then answer[#answer + 1] = redis.call('HGET', MESSAGES, id) end
    end
    offset = offset + 100
  until #page < 100
end
return answer
